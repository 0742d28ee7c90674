//! Which directory something is.

use rustix::fs::{Stat, Statx, StatxFlags};

/// Device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

/// Which directory something is, also after its inode number was given to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub identity: Identity,
    /// When it was made, in nanoseconds; 0 where nobody knows.
    pub birth: u64,
}

impl std::str::FromStr for Identity {
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

impl std::str::FromStr for Known {
    type Err = String;

    /// Reads `DEV:INO:BIRTH`, as options write it.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parts = text.rsplit_once(':').and_then(|(identity, birth)| {
            Some(Self {
                identity: identity.parse().ok()?,
                birth: birth.parse().ok()?,
            })
        });
        parts.ok_or_else(|| format!("{text:?} is not DEV:INO:BIRTH"))
    }
}

impl Identity {
    pub fn of(status: &Stat) -> Self {
        Self {
            device: status.st_dev,
            inode: status.st_ino,
        }
    }
}

impl Known {
    pub fn of(status: &Statx) -> Self {
        let seconds = status.stx_btime.tv_sec as u64;
        let nanoseconds = u64::from(status.stx_btime.tv_nsec);
        let is_told = status.stx_mask & StatxFlags::BTIME.bits() != 0;
        Self {
            identity: Identity {
                device: rustix::fs::makedev(status.stx_dev_major, status.stx_dev_minor),
                inode: status.stx_ino,
            },
            birth: match is_told {
                true => seconds
                    .wrapping_mul(1_000_000_000)
                    .wrapping_add(nanoseconds),
                false => 0,
            },
        }
    }

    /// Whether this directory is the one that was pinned; a pin without a birth fits any.
    pub fn matches_pin(&self, pin: &Self) -> bool {
        self.identity == pin.identity && (pin.birth == 0 || pin.birth == self.birth)
    }

    /// Tells whether both are the same one; where no births are told, whether they may be.
    pub fn is(&self, other: &Self) -> bool {
        self.identity == other.identity && self.birth == other.birth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_another_birth_or_has_lost_its_own_is_another() {
        let identity = Identity {
            device: 1,
            inode: 2,
        };
        let born = |birth| Known { identity, birth };
        assert!(born(3).is(&born(3)) && born(0).is(&born(0)));
        assert!(!born(3).is(&born(4)) && !born(3).is(&born(0)) && !born(0).is(&born(3)));
    }

    #[test]
    fn a_pin_with_another_inode_or_birth_does_not_match() {
        let pin = |text: &str| text.parse::<Known>().unwrap();
        let directory = pin("1:2:3");
        assert!(directory.matches_pin(&pin("1:2:3")) && directory.matches_pin(&pin("1:2:0")));
        for other in ["1:2:4", "1:3:3", "2:2:3", "1:3:0"] {
            assert!(!directory.matches_pin(&pin(other)), "{other}");
        }
        assert!(!pin("1:2:0").matches_pin(&directory));
        for wrong in ["1:2", "1:2:", "1:2:3:4", "a:2:3", "1:2:-3"] {
            assert!(wrong.parse::<Known>().is_err(), "{wrong}");
        }
    }
}
