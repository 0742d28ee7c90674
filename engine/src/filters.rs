//! Filters of entries, with the semantics of find's tests, and shares of a directory.

use std::ffi::{CStr, CString};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::RangeBounds;
use std::os::unix::ffi::OsStringExt;
use std::str::FromStr;

use lexopt::{Arg, ValueExt};
use rustix::fs::{FileType, Stat, Statx};

use crate::sys::matches_glob;

/// One of several shares of the names directly in a root, each for another machine. The name decides,
/// so that all machines divide a directory equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// 1 to `of`.
    number: u32,
    of: u32,
}

impl Share {
    /// Returns whether a name belongs to this share.
    pub fn contains(&self, name: &CStr) -> bool {
        crc32fast::hash(name.to_bytes()) % self.of == self.number - 1
    }
}

impl FromStr for Share {
    type Err = &'static str;

    /// Parses `NUMBER/OF`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            let (number, of) = (number.parse().ok()?, of.parse().ok()?);
            (1 <= number && number <= of).then_some(Self { number, of })
        });
        parsed.ok_or("a share is NUMBER/OF, for example 1/4")
    }
}

/// Conditions on an entry that is not a directory, and the share of the root. Without them every
/// entry is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Shell pattern on the name.
    pub name_glob: Option<CString>,
    /// Regular files of at least this size.
    pub min_size_bytes: Option<u64>,
    /// Regular files below this size.
    pub size_below_bytes: Option<u64>,
    /// Modified at or before this time (epoch seconds).
    pub modified_before_s: Option<i64>,
    /// Modified after this time (epoch seconds).
    pub modified_after_s: Option<i64>,
    /// Only these entries of a root, with everything in them.
    pub share: Option<Share>,
}

impl Filters {
    /// Parses the value of a filter option; fails if the option is none.
    pub fn parse_option(
        &mut self,
        option: &str,
        parser: &mut lexopt::Parser,
    ) -> Result<(), lexopt::Error> {
        match option {
            "name" => {
                let glob = CString::new(parser.value()?.into_vec());
                self.name_glob = Some(glob.map_err(|_| "the pattern contains a NUL")?);
            }
            "min-size" => self.min_size_bytes = Some(parser.value()?.parse()?),
            "size-below" => self.size_below_bytes = Some(parser.value()?.parse()?),
            "modified-after" => self.modified_after_s = Some(parser.value()?.parse()?),
            "modified-before" => self.modified_before_s = Some(parser.value()?.parse()?),
            "share" => self.share = Some(parser.value()?.parse()?),
            _ => return Err(Arg::Long(option).unexpected()),
        }
        Ok(())
    }

    /// Returns whether any condition on an entry is set.
    pub fn are_active(&self) -> bool {
        self.name_glob.is_some() || self.need_status()
    }

    /// Returns whether a name directly in a root belongs to the share.
    pub fn share_contains(&self, name: &CStr) -> bool {
        self.share.map_or(true, |share| share.contains(name))
    }

    /// Returns whether a condition needs the status of an entry.
    pub fn need_status(&self) -> bool {
        self.selects_by_size()
            || self.modified_before_s.is_some()
            || self.modified_after_s.is_some()
    }

    fn selects_by_size(&self) -> bool {
        self.min_size_bytes.is_some() || self.size_below_bytes.is_some()
    }

    pub fn matches_name(&self, name: &CStr) -> bool {
        self.name_glob
            .as_deref()
            .map_or(true, |glob| matches_glob(glob, name))
    }

    /// Returns whether an entry is selected by its status.
    pub fn matches_stat(&self, status: &Stat) -> bool {
        let modified = (status.st_mtime, status.st_mtime_nsec as u32);
        self.matches_attributes(status.st_mode, status.st_size as u64, modified)
    }

    /// Returns whether an entry is selected by its statx status.
    pub fn matches_statx(&self, status: &Statx) -> bool {
        let modified = (status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec);
        self.matches_attributes(u32::from(status.stx_mode), status.stx_size, modified)
    }

    fn matches_attributes(&self, mode: u32, size_bytes: u64, modified: (i64, u32)) -> bool {
        let sizes = (
            self.min_size_bytes.map_or(Unbounded, Included),
            self.size_below_bytes.map_or(Unbounded, Excluded),
        );
        let times = (
            (self.modified_after_s).map_or(Unbounded, |after| Excluded((after, 0))),
            (self.modified_before_s).map_or(Unbounded, |before| Included((before, 0))),
        );
        let is_file = FileType::from_raw_mode(mode) == FileType::RegularFile;
        (is_file || !self.selects_by_size())
            && sizes.contains(&size_bytes)
            && times.contains(&modified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_in_one_share() {
        let shares: Vec<Share> = (1..=3)
            .map(|number| format!("{number}/3").parse().unwrap())
            .collect();
        let names: Vec<CString> = (0..300)
            .map(|number| CString::new(format!("name {number}")).unwrap())
            .collect();
        for name in &names {
            assert_eq!(
                shares.iter().filter(|share| share.contains(name)).count(),
                1
            );
        }
        for share in &shares {
            let size = names.iter().filter(|name| share.contains(name)).count();
            assert!((70..130).contains(&size), "{share:?}: {size}");
        }
    }

    #[test]
    fn shares_are_those_of_zlib() {
        let share: Share = "3/4".parse().unwrap();
        assert!(share.contains(c"123456789")); // its CRC-32 is 0xcbf43926, the check value
        assert!(!share.contains(c"")); // its CRC-32 is 0
    }

    #[test]
    fn wrong_shares_are_refused() {
        for text in ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b"] {
            assert!(text.parse::<Share>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_share_is_no_condition_on_an_entry() {
        let filters = Filters {
            share: "1/2".parse().ok(),
            ..Filters::default()
        };
        assert!(!filters.are_active());
    }
}
