//! File systems by their number (statfs(2)), and their measured properties.

use rustix::fd::BorrowedFd;
use rustix::io::Result;

use crate::concurrency::Scaling;
use crate::identity::DirIdentity;
use crate::syscalls::Syscalls;

/// The properties of a file system, measured with Linux 6.18.
#[derive(Debug, PartialEq, Eq)]
pub struct FileSystem {
    magic: u64,
    /// Names in mountinfo (proc(5)).
    pub names: &'static [&'static str],
    /// The effect of several workers in different directories.
    pub scaling_across_dirs: Scaling,
    /// Several workers in one directory are faster than one.
    pub scales_within_dir: bool,
    /// Evictions run in parallel with removals while removals in one directory are serialized.
    pub benefits_from_deferred_evict: bool,
    /// Inodes are locked by allocation group.
    pub has_allocation_groups: bool,
    /// The order of inodes does not matter.
    pub is_in_memory: bool,
    /// A lease detects every open descriptor. Elsewhere a file may be open by another inode, or on
    /// another machine.
    pub has_reliable_leases: bool,
    /// Deleting an entry may change the birth time of its directory.
    has_unstable_birth: bool,
}

/// A file system that was not measured.
const UNKNOWN: FileSystem = FileSystem {
    magic: 0,
    names: &[],
    scaling_across_dirs: Scaling::Unknown,
    scales_within_dir: false,
    benefits_from_deferred_evict: false,
    has_allocation_groups: false,
    is_in_memory: false,
    has_reliable_leases: false,
    has_unstable_birth: false,
};

/// ext4 and tmpfs evict inodes in parallel with other removals. xfs spreads directories over its
/// allocation groups, and locks the list of unlinked inodes, which the files of a directory share.
/// btrfs has all names in one tree and locks its root. overlayfs copies a directory up when an entry
/// of it is deleted.
pub static KNOWN: [FileSystem; 7] = [
    FileSystem {
        magic: 0xef53,
        names: &["ext2", "ext3", "ext4"],
        scaling_across_dirs: Scaling::Faster,
        scales_within_dir: true,
        benefits_from_deferred_evict: true,
        has_reliable_leases: true,
        ..UNKNOWN
    },
    FileSystem {
        magic: 0x5846_5342,
        names: &["xfs"],
        scaling_across_dirs: Scaling::Faster,
        has_allocation_groups: true,
        has_reliable_leases: true,
        ..UNKNOWN
    },
    FileSystem {
        magic: 0x9123_683e,
        names: &["btrfs"],
        scaling_across_dirs: Scaling::Slower,
        has_reliable_leases: true,
        ..UNKNOWN
    },
    FileSystem {
        magic: 0x0102_1994,
        names: &["tmpfs"],
        scaling_across_dirs: Scaling::Faster,
        scales_within_dir: true,
        is_in_memory: true,
        has_reliable_leases: true,
        ..UNKNOWN
    },
    FileSystem {
        magic: 0xf2f5_2010,
        names: &["f2fs"],
        has_reliable_leases: true,
        ..UNKNOWN
    },
    FileSystem {
        magic: 0x8584_58f6,
        names: &["ramfs"],
        is_in_memory: true,
        ..UNKNOWN
    },
    FileSystem {
        magic: 0x794c_7630,
        names: &["overlay"],
        has_unstable_birth: true,
        ..UNKNOWN
    },
];

/// A file system that is not in the table: of a server, or of another kind.
static OTHER: FileSystem = FileSystem {
    scaling_across_dirs: Scaling::Waiting,
    ..UNKNOWN
};

impl FileSystem {
    pub fn of(descriptor: BorrowedFd<'_>, calls: &Syscalls) -> Result<&'static Self> {
        let magic = calls.file_system_magic(descriptor)?;
        let known = KNOWN.iter().find(|known| known.magic == magic);
        Ok(known.unwrap_or(&OTHER))
    }

    /// Returns the identity of an open directory, without a birth time that is not stable, and whether it
    /// is the root of a mount; see `Syscalls::identify`.
    pub fn identify(&self, fd: BorrowedFd<'_>, calls: &Syscalls) -> Result<(DirIdentity, bool)> {
        let (mut identity, is_mount_root) = calls.identify(fd)?;
        if self.has_unstable_birth {
            identity.birth_ns = 0;
        }
        Ok((identity, is_mount_root))
    }
}
