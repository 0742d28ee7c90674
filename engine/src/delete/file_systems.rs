//! File systems by the number that statfs(2) tells, and what is known of them.

use rustix::fd::BorrowedFd;
use rustix::io::Result;

use crate::identity::Known;
use crate::syscalls::Calls;

const EXT: u64 = 0xef53;
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683e;
const F2FS: u64 = 0xf2f5_2010;
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const OVERLAYFS: u64 = 0x794c_7630;

/// What a descriptor's file system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem(u64);

impl FileSystem {
    #[cfg(test)]
    pub const EXT: Self = Self(EXT);
    #[cfg(test)]
    pub const XFS: Self = Self(XFS);

    pub fn of(descriptor: BorrowedFd<'_>, calls: &Calls) -> Result<Self> {
        calls.kind_of_file_system(descriptor).map(Self)
    }

    /// Which directory a descriptor stands for.
    pub fn identify(self, descriptor: BorrowedFd<'_>, calls: &Calls) -> Result<Known> {
        let known = calls.identify(descriptor)?;
        Ok(self.without_unstable_birth(known))
    }

    /// On overlayfs the birth time of a directory changes when an entry in it is deleted, because
    /// the directory is copied up.
    pub fn without_unstable_birth(self, known: Known) -> Known {
        match self.0 {
            OVERLAYFS => Known { birth: 0, ..known },
            _ => known,
        }
    }

    /// Whether the order of inodes is of no use here.
    pub fn is_in_memory(self) -> bool {
        matches!(self.0, TMPFS | RAMFS)
    }

    /// Whether two get into each other's way less where directories lie apart: xfs locks the inodes
    /// of a group, and spreads directories over the groups.
    pub fn has_parts(self) -> bool {
        self.0 == XFS
    }

    /// Whether a lease knows everybody who has a file open; elsewhere somebody may have it by
    /// another inode, or on another machine.
    pub fn has_reliable_leases(self) -> bool {
        matches!(self.0, EXT | XFS | BTRFS | F2FS | TMPFS)
    }

    /// Whether two are faster than one in one directory, where that was measured (Linux 6.18): ext
    /// and tmpfs free inodes beside other removals; xfs locks the list of unlinked inodes that all
    /// files of a directory share; btrfs keeps all names in one tree, whose root both want.
    pub fn gains_by_splitting(self) -> Option<bool> {
        match self.0 {
            EXT | TMPFS => Some(true),
            XFS | BTRFS => Some(false),
            _ => None,
        }
    }

    /// Whether a file's inode is freed beside other removals once nobody has it any more, where
    /// the removals themselves are one after the other: then it pays to have somebody else free it.
    pub fn benefits_from_deferred_evict(self) -> bool {
        self.0 == EXT
    }

    /// Whether two are faster than one in different directories, where that was measured (Linux
    /// 6.18): not on btrfs, for the same reason.
    pub fn gains_by_threads(self) -> Option<bool> {
        match self.0 {
            EXT | TMPFS | XFS => Some(true),
            BTRFS => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_known_and_nothing_else() {
        let known = [
            (EXT, Some(true), Some(true), false),
            (TMPFS, Some(true), Some(true), false),
            (XFS, Some(false), Some(true), true),
            (BTRFS, Some(false), Some(false), false),
            (F2FS, None, None, false),
            (RAMFS, None, None, false),
        ];
        for (number, splitting, threads, has_parts) in known {
            assert_eq!(FileSystem(number).gains_by_splitting(), splitting);
            assert_eq!(FileSystem(number).gains_by_threads(), threads);
            assert_eq!(FileSystem(number).has_parts(), has_parts);
            assert_eq!(
                FileSystem(number).benefits_from_deferred_evict(),
                number == EXT
            );
        }
    }
}
