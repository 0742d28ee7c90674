//! Which entries to delete, or to count besides: the same choice that find's tests make.

use std::ffi::{CStr, CString};

use rustix::fs::{FileType, Statx, StatxFlags};

use crate::foreign::matches_glob;

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
    /// Whether anything is filtered at all.
    pub fn are_active(&self) -> bool {
        *self != Self::default()
    }

    /// Whether names alone do not decide.
    pub fn need_status(&self) -> bool {
        self.min_size_bytes.is_some() || self.modified_before_s.is_some()
    }

    /// What `matches` must know.
    pub const MASK: StatxFlags = StatxFlags::TYPE
        .union(StatxFlags::SIZE)
        .union(StatxFlags::MTIME);

    pub fn match_name(&self, name: &CStr) -> bool {
        self.name_glob
            .as_deref()
            .map_or(true, |glob| matches_glob(glob, name))
    }

    /// Tells whether what a name stands for is selected, its name aside.
    pub fn match_status(&self, status: &Statx) -> bool {
        if let Some(least) = self.min_size_bytes {
            let kind = FileType::from_raw_mode(u32::from(status.stx_mode));
            if kind != FileType::RegularFile || status.stx_size < least {
                return false;
            }
        }
        self.modified_before_s.map_or(true, |before| {
            let modified = status.stx_mtime;
            (modified.tv_sec, modified.tv_nsec) <= (before, 0)
        })
    }
}
