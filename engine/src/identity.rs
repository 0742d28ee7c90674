//! Identities of directories.

use rustix::fs::{Stat, Statx, StatxFlags};

/// Device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DevIno {
    pub device: u64,
    pub inode: u64,
}

/// The identity of a directory, which stays distinct when its inode number is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirIdentity {
    pub dev_ino: DevIno,
    /// Birth time in nanoseconds since the epoch; 0 if unknown.
    pub birth_ns: u64,
}

impl std::str::FromStr for DevIno {
    type Err = String;

    /// Reads `DEV:INO`, as options write it.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers = text.split_once(':').and_then(|(device, inode)| {
            Some(Self {
                device: device.parse().ok()?,
                inode: inode.parse().ok()?,
            })
        });
        numbers.ok_or_else(|| format!("{text:?} is not DEV:INO"))
    }
}

impl std::str::FromStr for DirIdentity {
    type Err = String;

    /// Reads `DEV:INO:BIRTH`, as options write it.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parts = text.rsplit_once(':').and_then(|(dev_ino, birth_ns)| {
            Some(Self {
                dev_ino: dev_ino.parse().ok()?,
                birth_ns: birth_ns.parse().ok()?,
            })
        });
        parts.ok_or_else(|| format!("{text:?} is not DEV:INO:BIRTH"))
    }
}

impl DevIno {
    pub fn from_stat(status: &Stat) -> Self {
        Self {
            device: status.st_dev,
            inode: status.st_ino,
        }
    }

    pub fn from_statx(status: &Statx) -> Self {
        Self {
            device: rustix::fs::makedev(status.stx_dev_major, status.stx_dev_minor),
            inode: status.stx_ino,
        }
    }
}

impl DirIdentity {
    pub fn from_statx(status: &Statx) -> Self {
        let seconds = status.stx_btime.tv_sec as u64;
        let nanoseconds = seconds.wrapping_mul(1_000_000_000);
        let birth_ns = nanoseconds.wrapping_add(status.stx_btime.tv_nsec.into());
        let has_birth = status.stx_mask & StatxFlags::BTIME.bits() != 0;
        Self {
            dev_ino: DevIno::from_statx(status),
            birth_ns: if has_birth { birth_ns } else { 0 },
        }
    }

    /// Returns whether this directory is the pinned one. A pin without a birth time fits any.
    pub fn matches_pin(&self, pin: &Self) -> bool {
        self.dev_ino == pin.dev_ino && (pin.birth_ns == 0 || pin.birth_ns == self.birth_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pin_with_other_inode_or_birth_time_does_not_match() {
        let pin = |text: &str| text.parse::<DirIdentity>().unwrap();
        let directory = pin("1:2:3");
        assert!(directory.matches_pin(&pin("1:2:3")) && directory.matches_pin(&pin("1:2:0")));
        for other in ["1:2:4", "1:3:3", "2:2:3", "1:3:0"] {
            assert!(!directory.matches_pin(&pin(other)), "{other}");
        }
        assert!(!pin("1:2:0").matches_pin(&directory));
        for wrong in ["1:2", "1:2:", "1:2:3:4", "a:2:3", "1:2:-3"] {
            assert!(wrong.parse::<DirIdentity>().is_err(), "{wrong}");
        }
    }
}
