//! Sums of the entries of one directory.

use std::ffi::CStr;

use rustix::fs::{FileType, Statx, StatxAttributes, StatxFlags};

use super::histogram::{Classes, Histogram};
use super::names;
use super::records::{flag, is_full, Batch, BigFile, DirRecord, Link, Matched, Sums};
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

/// The sums of one directory since its last record. Flags and the longest name stay.
#[derive(Debug, Default)]
pub struct Tally {
    pub flags: u32,
    /// Owner of the directory.
    owner: u32,
    longest_name: u64,
    sums: Sums,
    matched: Matched,
    histogram: Histogram,
}

impl Tally {
    pub fn new(owner: u32) -> Self {
        Self {
            owner,
            ..Self::default()
        }
    }

    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Returns whether the sums must be emitted before another entry is added.
    pub fn is_full(&self) -> bool {
        is_full(&[self.sums.apparent_bytes, self.sums.allocated_bytes])
    }

    /// Moves the sums into a record.
    pub fn move_to(&mut self, record: &mut DirRecord<'_>) {
        record.sums = std::mem::take(&mut self.sums);
        record.matched = std::mem::take(&mut self.matched);
        record.histogram = std::mem::take(&mut self.histogram);
        record.longest_name = self.longest_name;
        record.flags = self.flags;
    }

    /// Adds a name with its type only.
    pub fn add_name(&mut self, name: &CStr, kind: FileType) {
        let bytes = name.to_bytes();
        self.flags |= names::name_flags(bytes);
        self.longest_name = self.longest_name.max(bytes.len() as u64);
        let sums = &mut self.sums;
        sums.record_bytes += (DIRENT_HEADER_BYTES + bytes.len()).next_multiple_of(8) as u64;
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
    }

    /// Adds a match without its status.
    pub fn add_matched_name(&mut self, kind: FileType) {
        self.matched.entries[kind_index(kind)] += 1;
    }

    /// Adds an entry. Links and big files get records in the batch.
    ///
    /// `directory` is the number of the directory with this entry. With filters, only what they select
    /// is in the histogram.
    pub fn add(
        &mut self,
        name: &CStr,
        status: &Statx,
        directory: u64,
        filters: Option<&Filters>,
        classes: Option<&Classes>,
        batch: &mut Batch,
    ) {
        let kind = kind_of(status);
        self.add_name(name, kind);
        if status.stx_uid != self.owner {
            self.flags |= flag::FOREIGN_OWNERS;
        }
        if kind == FileType::Directory {
            return;
        }
        if status.stx_attributes.intersects(LOCKED) {
            self.flags |= flag::LOCKED_FILES;
        }
        let sums = &mut self.sums;
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
            batch.add_big_file(&BigFile {
                directory,
                name: name.to_bytes(),
                apparent_bytes,
                allocated_bytes,
                modified_s: status.stx_mtime.tv_sec,
                device,
                inode,
            });
        }
        let is_matched = filters
            .is_some_and(|filters| filters.matches_name(name) && filters.matches_statx(status));
        if is_matched {
            self.matched.newest_s = self.matched.newest_s.max(modified_s);
            self.matched.oldest_s = earlier(self.matched.oldest_s, modified_s);
        }
        if let Some(classes) = classes.filter(|_| filters.is_none() || is_matched) {
            let own_bytes = if has_several_names {
                0
            } else {
                allocated_bytes
            };
            let modified_s = status.stx_mtime.tv_sec;
            (self.histogram).add(classes, modified_s, apparent_bytes, own_bytes);
        }
        if has_several_names {
            batch.add_link(&Link {
                directory,
                device,
                inode,
                names: status.stx_nlink,
                apparent_bytes,
                allocated_bytes,
                kind: kind_index(kind) as u8,
                is_matched,
                modified_s: status.stx_mtime.tv_sec,
            });
            return;
        }
        // a FUSE file system may report any number of blocks
        sums.apparent_bytes = sums.apparent_bytes.saturating_add(apparent_bytes);
        sums.allocated_bytes = sums.allocated_bytes.saturating_add(allocated_bytes);
        if is_matched {
            let matched = &mut self.matched;
            matched.entries[kind_index(kind)] += 1;
            matched.apparent_bytes = matched.apparent_bytes.saturating_add(apparent_bytes);
            matched.allocated_bytes = matched.allocated_bytes.saturating_add(allocated_bytes);
        }
    }
}

/// Returns the earlier time; 0 is none.
fn earlier(oldest_s: i64, modified_s: i64) -> i64 {
    match oldest_s {
        0 => modified_s,
        oldest_s => oldest_s.min(modified_s),
    }
}

/// Returns the index in `Matched::entries`: files, symbolic links, other.
fn kind_index(kind: FileType) -> usize {
    match kind {
        FileType::RegularFile => 0,
        FileType::Symlink => 1,
        _ => 2,
    }
}
