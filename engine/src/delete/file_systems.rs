//! File systems by their number (statfs(2)), and their measured properties.

use rustix::fd::BorrowedFd;
use rustix::io::Result;

use super::concurrency::Scaling;
use crate::identity::DirIdentity;
use crate::syscalls::Syscalls;

const EXT: u64 = 0xef53;
const XFS: u64 = 0x5846_5342;
const BTRFS: u64 = 0x9123_683e;
const F2FS: u64 = 0xf2f5_2010;
const TMPFS: u64 = 0x0102_1994;
const RAMFS: u64 = 0x8584_58f6;
const OVERLAYFS: u64 = 0x794c_7630;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystem(u64);

impl FileSystem {
    #[cfg(test)]
    pub const EXT: Self = Self(EXT);
    #[cfg(test)]
    pub const XFS: Self = Self(XFS);

    pub fn of(descriptor: BorrowedFd<'_>, calls: &Syscalls) -> Result<Self> {
        calls.file_system_magic(descriptor).map(Self)
    }

    /// Returns the identity of an open directory.
    pub fn identify(self, descriptor: BorrowedFd<'_>, calls: &Syscalls) -> Result<DirIdentity> {
        let identity = calls.identify(descriptor)?;
        Ok(self.without_unstable_birth(identity))
    }

    /// Drops a birth time that is not stable: on overlayfs, deleting an entry copies the directory up and
    /// changes its birth time.
    pub fn without_unstable_birth(self, identity: DirIdentity) -> DirIdentity {
        match self.0 {
            OVERLAYFS => DirIdentity {
                birth_ns: 0,
                ..identity
            },
            _ => identity,
        }
    }

    /// Returns whether the order of inodes does not matter.
    pub fn is_in_memory(self) -> bool {
        matches!(self.0, TMPFS | RAMFS)
    }

    /// Returns whether inodes are locked by allocation group. xfs spreads directories over its groups.
    pub fn has_allocation_groups(self) -> bool {
        self.0 == XFS
    }

    /// Returns whether a lease detects every open descriptor. Elsewhere a file may be open by another
    /// inode, or on another machine.
    pub fn has_reliable_leases(self) -> bool {
        matches!(self.0, EXT | XFS | BTRFS | F2FS | TMPFS)
    }

    /// Returns whether two workers in one directory are faster than one, as measured (Linux 6.18).
    /// Where it was not measured, one worker empties a directory.
    ///
    /// ext4 and tmpfs evict inodes in parallel with other removals. xfs locks the list of unlinked
    /// inodes, which the files of a directory share. btrfs has all names in one tree and locks its root.
    pub fn scales_within_dir(self) -> bool {
        matches!(self.0, EXT | TMPFS)
    }

    /// Returns whether evictions run in parallel with removals while removals in one directory are
    /// serialized.
    pub fn benefits_from_deferred_evict(self) -> bool {
        self.0 == EXT
    }

    /// Returns what two workers in different directories gain over one, as measured (Linux 6.18).
    pub fn scaling_across_dirs(self) -> Scaling {
        match self.0 {
            EXT | TMPFS | XFS => Scaling::Faster,
            BTRFS => Scaling::Slower,
            _ => Scaling::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_match_measurements() {
        use Scaling::{Faster, Slower, Unknown};
        let measured = [
            (EXT, true, Faster, false),
            (TMPFS, true, Faster, false),
            (XFS, false, Faster, true),
            (BTRFS, false, Slower, false),
            (F2FS, false, Unknown, false),
            (RAMFS, false, Unknown, false),
        ];
        for (number, within_dir, across_dirs, has_allocation_groups) in measured {
            assert_eq!(FileSystem(number).scales_within_dir(), within_dir);
            assert_eq!(FileSystem(number).scaling_across_dirs(), across_dirs);
            assert_eq!(
                FileSystem(number).has_allocation_groups(),
                has_allocation_groups
            );
            assert_eq!(
                FileSystem(number).benefits_from_deferred_evict(),
                number == EXT
            );
        }
    }
}
