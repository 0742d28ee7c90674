//! Filters of entries, with the semantics of find's tests.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStringExt;

use lexopt::ValueExt;
use rustix::fs::{FileType, Stat, Statx};

use crate::sys::matches_glob;

/// Conditions on an entry that is not a directory. Without conditions every entry is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Shell pattern on the name.
    pub name_glob: Option<CString>,
    /// Regular files of at least this size.
    pub min_size_bytes: Option<u64>,
    /// Modified at or before this time (epoch seconds).
    pub modified_before_s: Option<i64>,
}

impl Filters {
    /// Parses the value of a filter option; returns whether the option is one.
    pub fn parse_option(
        &mut self,
        option: &str,
        parser: &mut lexopt::Parser,
    ) -> Result<bool, lexopt::Error> {
        match option {
            "name" => {
                let glob = CString::new(parser.value()?.into_vec());
                self.name_glob = Some(glob.map_err(|_| "the pattern contains a NUL")?);
            }
            "min-size" => self.min_size_bytes = Some(parser.value()?.parse()?),
            "modified-before" => self.modified_before_s = Some(parser.value()?.parse()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns whether any condition is set.
    pub fn are_active(&self) -> bool {
        *self != Self::default()
    }

    /// Returns whether a condition needs the status of an entry.
    pub fn need_status(&self) -> bool {
        self.min_size_bytes.is_some() || self.modified_before_s.is_some()
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
        let is_large_enough = self.min_size_bytes.map_or(true, |min_bytes| {
            FileType::from_raw_mode(mode) == FileType::RegularFile && size_bytes >= min_bytes
        });
        let is_old_enough = self
            .modified_before_s
            .map_or(true, |before| modified <= (before, 0));
        is_large_enough && is_old_enough
    }
}
