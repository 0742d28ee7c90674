//! A directory that is being read: its progress, and the names of one getdents64.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Statx};
use rustix::io::Result;

use super::records::{DirRecord, NO_PARENT};
use super::tally::{allocated_bytes_of, Tally};
use crate::syscalls::Syscalls;

/// A directory that is partly emitted, or a part of a directory that another walker emits.
#[derive(Debug, Default)]
pub struct DirProgress {
    pub tally: Tally,
    /// Names read so far.
    pub entries: u64,
    /// The offset (getdents64) at which reading continues.
    pub cookie: u64,
    /// Records that will follow, counted since the last record: one for each subdirectory, and one
    /// for each part that another walker reads.
    pub pending: i64,
    /// Subdirectories that are not entered, and their flags.
    pub elsewhere: Vec<(Vec<u8>, u32)>,
    /// Modification time when reading began, in seconds and nanoseconds.
    pub modified: (i64, u32),
    /// Fields of the first record; `None` once it is emitted.
    first: Option<FirstRecord>,
}

#[derive(Debug)]
struct FirstRecord {
    parent: i64,
    name: Vec<u8>,
    own_bytes: u64,
    own_allocated_bytes: u64,
}

impl DirProgress {
    /// Starts a directory. A root has no parent, and its name is its path.
    pub fn new(parent: Option<u64>, name: &[u8], status: &Statx) -> Self {
        let first = FirstRecord {
            parent: parent.map_or(NO_PARENT, |number| number as i64),
            name: name.to_vec(),
            own_bytes: status.stx_size,
            own_allocated_bytes: allocated_bytes_of(status),
        };
        Self {
            modified: modified(status),
            first: Some(first),
            ..Self::part(status.stx_uid)
        }
    }

    /// Starts a part of a directory with this owner.
    pub fn part(owner: u32) -> Self {
        Self {
            tally: Tally::new(owner),
            ..Self::default()
        }
    }

    /// Emits what was read since the last record. `number` is the directory's.
    pub fn emit(&mut self, number: u64, is_last: bool, emit: impl FnOnce(&DirRecord<'_>)) {
        let first = self.first.take();
        let pending = std::mem::take(&mut self.pending);
        let mut record = DirRecord {
            number,
            parent: NO_PARENT,
            pending: pending + i64::from(first.is_some()) - i64::from(is_last),
            ..DirRecord::default()
        };
        if let Some(first) = &first {
            record.parent = first.parent;
            record.name = &first.name;
            record.own_bytes = first.own_bytes;
            record.own_allocated_bytes = first.own_allocated_bytes;
        }
        self.tally.move_to(&mut record);
        emit(&record);
    }
}

pub fn modified(status: &Statx) -> (i64, u32) {
    (status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec)
}

/// Names of one directory without `.` and `..`.
#[derive(Debug, Default)]
pub struct DirentBatch {
    names: Vec<u8>,
    dirents: Vec<Dirent>,
}

#[derive(Clone, Copy, Debug)]
struct Dirent {
    inode: u64,
    start: u32,
    /// d_type, which a file system may leave unknown.
    kind: FileType,
}

impl DirentBatch {
    /// Replaces the names by the next ones of the directory.
    ///
    /// Returns the offset after them; `None` at the end of the directory.
    pub fn fill(
        &mut self,
        calls: &Syscalls,
        fd: BorrowedFd<'_>,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Option<u64>> {
        self.names.clear();
        self.dirents.clear();
        calls.read_names(fd, buffer, |name, kind, inode| {
            let start = self.names.len() as u32;
            self.dirents.push(Dirent { inode, start, kind });
            self.names.extend_from_slice(name.to_bytes_with_nul());
        })
    }

    pub fn len(&self) -> usize {
        self.dirents.len()
    }

    /// Sorts by inode number, which is the order on disk and in memory.
    pub fn sort(&mut self) {
        self.dirents.sort_unstable_by_key(|dirent| dirent.inode);
    }

    pub fn get(&self, index: usize) -> (&CStr, FileType) {
        let dirent = self.dirents[index];
        let rest = &self.names[dirent.start as usize..];
        let name = CStr::from_bytes_until_nul(rest).expect("each name ends in a NUL");
        (name, dirent.kind)
    }

    /// Splits off the names from an index on.
    pub fn split_off(&mut self, index: usize) -> Self {
        let mut rest = Self::default();
        for index in index..self.dirents.len() {
            let start = rest.names.len() as u32;
            rest.names
                .extend_from_slice(self.get(index).0.to_bytes_with_nul());
            let dirent = self.dirents[index];
            rest.dirents.push(Dirent { start, ..dirent });
        }
        self.dirents.truncate(index);
        rest
    }
}
