//! The progress of a directory that is being read.

use rustix::fs::Statx;

use super::histogram::Histogram;
use super::records::{DirRecord, Matched, NO_PARENT};
use super::tally::{allocated_bytes_of, Tally};

/// A directory that is partly emitted, or a part of a directory that another walker emits.
#[derive(Debug)]
pub struct DirProgress {
    pub tally: Tally,
    /// Names read so far.
    pub entries: u64,
    /// The offset (getdents64) at which reading continues.
    pub cookie: u64,
    /// Subdirectories that are not entered, and their flags.
    pub elsewhere: Vec<(Vec<u8>, u32)>,
    /// Modification time when reading began, in seconds and nanoseconds.
    pub modified: (i64, u32),
}

impl DirProgress {
    /// Starts a directory. A root has no parent, and its name is its path.
    pub fn new(number: u64, parent: Option<u64>, name: &[u8], status: &Statx) -> Self {
        let mut progress = Self::part(number, status.stx_uid);
        progress.modified = modified(status);
        let first = &mut progress.tally.record;
        first.parent = parent.map_or(NO_PARENT, |number| number as i64);
        first.name = name.to_vec();
        first.own_bytes = status.stx_size;
        first.own_allocated_bytes = allocated_bytes_of(status);
        first.pending = 1; // its last record
        progress
    }

    /// Starts a part of a directory with this owner.
    pub fn part(number: u64, owner: u32) -> Self {
        Self {
            tally: Tally {
                record: DirRecord::new(number),
                owner,
                matched: Matched::default(),
                histogram: Histogram::default(),
            },
            entries: 0,
            cookie: 0,
            elsewhere: Vec::new(),
            modified: (0, 0),
        }
    }

    /// Counts records that will follow: one for each subdirectory, and one for each part that another
    /// walker reads.
    pub fn add_pending(&mut self) {
        self.tally.record.pending += 1;
    }

    /// Takes the record of what was read since the last one. Flags and the longest name stay.
    pub fn take_record(&mut self, is_last: bool) -> DirRecord {
        let record = &mut self.tally.record;
        record.pending -= i64::from(is_last);
        let next = DirRecord {
            longest_name: record.longest_name,
            flags: record.flags,
            ..DirRecord::new(record.number)
        };
        std::mem::replace(record, next)
    }
}

pub fn modified(status: &Statx) -> (i64, u32) {
    (status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec)
}
