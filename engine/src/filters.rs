//! Which entries to delete, or to count besides: the same choice that find's tests make.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStringExt;

use lexopt::ValueExt;
use rustix::fs::{FileType, Stat, Statx};

use crate::sys::matches_glob;

/// What an entry that is not a directory must be like; nothing set selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// Shell pattern on the name.
    pub name_glob: Option<CString>,
    /// Regular files of at least so many bytes.
    pub min_size_bytes: Option<u64>,
    /// Last modified at or before this moment (epoch seconds).
    pub modified_before_s: Option<i64>,
}

impl Filters {
    /// Takes an option that sets one of them, with its value; tells whether it was one.
    pub fn take(
        &mut self,
        option: &str,
        parser: &mut lexopt::Parser,
    ) -> Result<bool, lexopt::Error> {
        match option {
            "name" => {
                let glob = CString::new(parser.value()?.into_vec());
                self.name_glob = Some(glob.map_err(|_| "a pattern holds a NUL")?);
            }
            "min-size" => self.min_size_bytes = Some(parser.value()?.parse()?),
            "modified-before" => self.modified_before_s = Some(parser.value()?.parse()?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Whether anything is filtered at all.
    pub fn are_active(&self) -> bool {
        *self != Self::default()
    }

    /// Whether names alone do not decide.
    pub fn need_status(&self) -> bool {
        self.min_size_bytes.is_some() || self.modified_before_s.is_some()
    }

    pub fn match_name(&self, name: &CStr) -> bool {
        self.name_glob
            .as_deref()
            .map_or(true, |glob| matches_glob(glob, name))
    }

    /// Tells whether what a name stands for is selected, its name aside.
    pub fn match_stat(&self, status: &Stat) -> bool {
        let modified = (status.st_mtime, status.st_mtime_nsec as u32);
        self.match_facts(status.st_mode, status.st_size as u64, modified)
    }

    /// The same of what statx says.
    pub fn match_status(&self, status: &Statx) -> bool {
        let modified = (status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec);
        self.match_facts(u32::from(status.stx_mode), status.stx_size, modified)
    }

    fn match_facts(&self, mode: u32, size_bytes: u64, modified: (i64, u32)) -> bool {
        let is_large_enough = self.min_size_bytes.map_or(true, |least| {
            FileType::from_raw_mode(mode) == FileType::RegularFile && size_bytes >= least
        });
        let is_old_enough = self
            .modified_before_s
            .map_or(true, |before| modified <= (before, 0));
        is_large_enough && is_old_enough
    }
}
