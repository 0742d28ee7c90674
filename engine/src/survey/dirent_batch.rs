//! The names that one getdents64 has given.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use rustix::fd::BorrowedFd;
use rustix::fs::FileType;
use rustix::io::Result;

use crate::syscalls::Calls;

/// Some names of one directory, `.` and `..` left out.
#[derive(Debug, Default)]
pub struct Slice {
    names: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    inode: u64,
    start: u32,
    /// As the directory tells it; a file system may leave it unknown.
    kind: FileType,
}

impl Slice {
    /// Reads the next names in place of those that are in it.
    ///
    /// Returns where reading goes on behind them; `None` at the end of the directory.
    pub fn fill(
        &mut self,
        calls: &Calls,
        directory: BorrowedFd<'_>,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Option<u64>> {
        self.names.clear();
        self.entries.clear();
        calls.read_names(directory, buffer, |name, kind, inode| {
            self.entries.push(Entry {
                inode,
                start: self.names.len() as u32,
                kind,
            });
            self.names.extend_from_slice(name.to_bytes_with_nul());
        })
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Puts the names in the order of their inodes, in which these lie on disk and in memory.
    pub fn sort(&mut self) {
        self.entries.sort_unstable_by_key(|entry| entry.inode);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&CStr, FileType)> {
        self.entries.iter().map(|entry| {
            let rest = &self.names[entry.start as usize..];
            let name = CStr::from_bytes_until_nul(rest).expect("each name ends in a NUL");
            (name, entry.kind)
        })
    }
}
