//! The progress of a directory that is being read, and the sums of its entries.

use std::ffi::CStr;

use rustix::fs::{FileType, Statx, StatxAttributes, StatxFlags};

use super::histogram::Histogram;
use super::name_flags::name_flags;
use super::records::{flag, Batch, BigFile, DirRecord, Link, Matched, NO_PARENT};
use crate::filters::Filters;
use crate::identity::DevIno;

/// Fields of statx(2) that an entry needs.
pub const ENTRY_MASK: StatxFlags = StatxFlags::TYPE
    .union(StatxFlags::MODE)
    .union(StatxFlags::NLINK)
    .union(StatxFlags::UID)
    .union(StatxFlags::INO)
    .union(StatxFlags::SIZE)
    .union(StatxFlags::BLOCKS)
    .union(StatxFlags::MTIME);

/// Attributes of a file that cannot be removed.
const LOCKED: StatxAttributes = StatxAttributes::IMMUTABLE.union(StatxAttributes::APPEND);

/// Files from this size on get a record of their own.
const MIN_BIG_FILE_BYTES: u64 = 64 << 20;

/// struct linux_dirent64 before the name, and the name's closing NUL; padded to 8.
const DIRENT_HEADER_BYTES: usize = 19 + 1;

/// The unit of st_blocks, independent of the file system's block size (stat(2)).
const BLOCK_BYTES: u64 = 512;

pub fn kind_of(status: &Statx) -> FileType {
    FileType::from_raw_mode(status.stx_mode.into())
}

pub fn allocated_bytes_of(status: &Statx) -> u64 {
    status.stx_blocks.wrapping_mul(BLOCK_BYTES)
}

/// A directory that is partly emitted, or a part of a directory that another walker emits.
#[derive(Debug, Default)]
pub struct DirProgress {
    /// The next record: the sums since the last one.
    pub record: DirRecord,
    pub matched: Matched,
    /// Owner of the directory.
    pub owner: u32,
    /// Names read so far.
    pub entries: u64,
    /// The offset (getdents64) at which reading continues.
    pub cookie: u64,
    /// Modification time when reading began, in seconds and nanoseconds.
    pub modified: (i64, u32),
}

impl DirProgress {
    /// Starts a directory. A root has no parent, and its name is its path.
    pub fn new(number: u64, parent: Option<u64>, name: &[u8], status: &Statx) -> Self {
        let mut progress = Self::part(number, status.stx_uid);
        progress.modified = modified(status);
        let first = &mut progress.record;
        first.parent = parent.map_or(NO_PARENT, |number| number as i64);
        first.name = name.to_vec();
        first.own_bytes = status.stx_size;
        first.own_allocated_bytes = allocated_bytes_of(status);
        first.pending = 1; // its last record
        progress
    }

    /// Starts a part of a directory with this owner.
    pub fn part(number: u64, owner: u32) -> Self {
        Self {
            record: DirRecord::new(number),
            owner,
            ..Self::default()
        }
    }

    /// Takes the record of what was read since the last one. Flags and the longest name stay.
    pub fn take_record(&mut self, is_last: bool) -> DirRecord {
        let record = &mut self.record;
        record.pending -= i64::from(is_last);
        let next = DirRecord {
            longest_name: record.longest_name,
            flags: record.flags,
            ..DirRecord::new(record.number)
        };
        std::mem::replace(record, next)
    }

    /// Adds an entry. Links and big files get records in the batch.
    /// With filters, only what they select is in the histogram.
    pub fn add(
        &mut self,
        name: &CStr,
        status: &Statx,
        filters: &Filters,
        histogram: Option<&mut Histogram<'_>>,
        batch: &mut Batch,
    ) {
        let (kind, bytes) = (kind_of(status), name.to_bytes());
        let sums = &mut self.record;
        let directory = sums.number;
        sums.flags |= name_flags(bytes);
        sums.longest_name = sums.longest_name.max(bytes.len() as u64);
        sums.record_bytes += (DIRENT_HEADER_BYTES + bytes.len()).next_multiple_of(8) as u64;
        if status.stx_uid != self.owner {
            sums.flags |= flag::FOREIGN_OWNERS;
        }
        match kind {
            FileType::Directory => {
                sums.subdirectories += 1;
                return;
            }
            FileType::RegularFile => sums.files += 1,
            FileType::Symlink => sums.symlinks += 1,
            _ => sums.other += 1,
        }
        sums.name_bytes += bytes.len() as u64;
        if status.stx_attributes.intersects(LOCKED) {
            sums.flags |= flag::LOCKED_FILES;
        }
        let modified_s = status.stx_mtime.tv_sec.max(1); // 0 means none
        sums.newest_s = sums.newest_s.max(modified_s);
        sums.oldest_s = earlier(sums.oldest_s, modified_s);
        let apparent_bytes = status.stx_size;
        let allocated_bytes = allocated_bytes_of(status);
        let has_several_names = status.stx_nlink > 1;
        let DevIno { device, inode } = DevIno::from_statx(status);
        if kind == FileType::RegularFile && apparent_bytes >= MIN_BIG_FILE_BYTES {
            let (device, inode) = match has_several_names {
                true => (device, inode),
                false => (0, 0),
            };
            batch.big_files.push(BigFile {
                directory,
                name: bytes.to_vec(),
                apparent_bytes,
                allocated_bytes,
                modified_s: status.stx_mtime.tv_sec,
                device,
                inode,
            });
        }
        let is_matched =
            filters.are_active() && filters.matches_name(name) && filters.matches_statx(status);
        if is_matched {
            self.matched.newest_s = self.matched.newest_s.max(modified_s);
            self.matched.oldest_s = earlier(self.matched.oldest_s, modified_s);
        }
        let histogram = histogram.filter(|_| is_matched || !filters.are_active());
        let [suffix, owner] = histogram.map_or([None; 2], |histogram| {
            let own_bytes = if has_several_names {
                0
            } else {
                allocated_bytes
            };
            histogram.add(name, status, own_bytes, &mut batch.labels)
        });
        if has_several_names {
            batch.links.push(Link {
                directory,
                device,
                inode,
                names: status.stx_nlink,
                apparent_bytes,
                allocated_bytes,
                kind: kind_index(kind),
                is_matched,
                modified_s: status.stx_mtime.tv_sec,
                suffix: suffix.unwrap_or(0),
                owner: owner.unwrap_or(0),
            });
            return;
        }
        // a FUSE file system may report any number of blocks
        sums.apparent_bytes = sums.apparent_bytes.saturating_add(apparent_bytes);
        sums.allocated_bytes = sums.allocated_bytes.saturating_add(allocated_bytes);
        if is_matched {
            let matched = &mut self.matched;
            match kind {
                FileType::RegularFile => matched.files += 1,
                FileType::Symlink => matched.symlinks += 1,
                _ => matched.other += 1,
            }
            matched.apparent_bytes = matched.apparent_bytes.saturating_add(apparent_bytes);
            matched.allocated_bytes = matched.allocated_bytes.saturating_add(allocated_bytes);
        }
    }
}

pub fn modified(status: &Statx) -> (i64, u32) {
    (status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec)
}

/// Returns the earlier time; 0 is none.
fn earlier(oldest_s: i64, modified_s: i64) -> i64 {
    match oldest_s {
        0 => modified_s,
        oldest_s => oldest_s.min(modified_s),
    }
}

/// Returns the kind in a link record: file, symbolic link, other.
fn kind_index(kind: FileType) -> u8 {
    match kind {
        FileType::RegularFile => 0,
        FileType::Symlink => 1,
        _ => 2,
    }
}
