//! The sums that `survey --totals` prints, in the way of `Totals` in tui_fs/model/survey.py.

use std::collections::HashSet;
use std::fmt;

use super::records::{flag, Batch};

#[derive(Debug, Default)]
pub struct Totals {
    directories: u64,
    files: u64,
    symlinks: u64,
    other: u64,
    apparent_bytes: u128,
    allocated_bytes: u128,
    /// Inodes with several names.
    links: HashSet<(u64, u64)>,
    /// Numbers of directories whose entries are missing.
    unreadable: HashSet<u64>,
    /// Mount points, whose entries are not counted.
    elsewhere: HashSet<u64>,
}

impl Totals {
    pub fn add(&mut self, batch: &Batch) {
        for record in &batch.dir_records {
            if record.flags & flag::VANISHED != 0 {
                continue;
            }
            // Only the first record of a directory has its name
            self.directories += u64::from(!record.name.is_empty());
            self.files += record.files;
            self.symlinks += record.symlinks;
            self.other += record.other;
            self.apparent_bytes += u128::from(record.apparent_bytes) + u128::from(record.own_bytes);
            self.allocated_bytes +=
                u128::from(record.allocated_bytes) + u128::from(record.own_allocated_bytes);
            if record.flags & flag::UNREADABLE != 0 {
                self.unreadable.insert(record.number);
            }
            if record.flags & flag::ELSEWHERE != 0 {
                self.elsewhere.insert(record.number);
            }
        }
        for link in &batch.links {
            if self.links.insert((link.device, link.inode)) {
                self.apparent_bytes += u128::from(link.apparent_bytes);
                self.allocated_bytes += u128::from(link.allocated_bytes);
            }
        }
    }

    pub fn is_complete(&self) -> bool {
        self.unreadable.is_empty()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.directories + self.files + self.symlinks + self.other;
        let rows = [
            (u128::from(entries), "entries"),
            (self.directories.into(), "directories"),
            (self.files.into(), "files"),
            (self.symlinks.into(), "symbolic links"),
            (self.other.into(), "other"),
            (self.apparent_bytes, "bytes (sizes of the files)"),
            (self.allocated_bytes, "bytes on disk"),
        ];
        let elsewhere = self.elsewhere.len() as u128;
        let unreadable = self.unreadable.len() as u128;
        let missing = [
            (
                elsewhere,
                "directories are on other file systems: not counted",
            ),
            (
                unreadable,
                "directories could not be read: the sums are too small",
            ),
        ];
        let missing = missing.iter().filter(|(number, _)| *number > 0);
        for (number, noun) in rows.iter().chain(missing) {
            writeln!(f, "{number:>20}  {noun}")?;
        }
        Ok(())
    }
}
