//! The names that one getdents64 has returned.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use rustix::fd::BorrowedFd;
use rustix::fs::FileType;
use rustix::io::Result;

use crate::syscalls::Syscalls;

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
            self.dirents.push(Dirent {
                inode,
                start: self.names.len() as u32,
                kind,
            });
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

    pub fn iter(&self) -> impl Iterator<Item = (&CStr, FileType)> {
        self.dirents.iter().map(|dirent| {
            let rest = &self.names[dirent.start as usize..];
            let name = CStr::from_bytes_until_nul(rest).expect("each name ends in a NUL");
            (name, dirent.kind)
        })
    }
}
