//! The state of a directory that is being read, and its flags.

use rustix::fd::BorrowedFd;
use rustix::fs::{Mode, Statx};

use super::acl::grants_write;
use super::records::{flag, DirRecord, NO_PARENT};
use super::tally::{allocated_bytes_of, Tally};

const ROOT: u32 = 0;

/// A directory that is partly emitted, or a part of a directory that another walker emits.
#[derive(Debug)]
pub struct DirProgress {
    pub tally: Tally,
    /// Names read so far.
    pub entries: u64,
    /// The offset (getdents64) at which reading continues.
    pub cookie: u64,
    /// Records that will follow, counted since the last record: one for each subdirectory, and one
    /// for each part that another walker reads.
    pub pending: i64,
    /// Subdirectories that are not entered, and their flags.
    pub elsewhere: Vec<(Vec<u8>, u32)>,
    /// Modification time when reading began, in seconds and nanoseconds.
    pub modified: (i64, u32),
    /// Fields of the first record; `None` once it is emitted.
    first: Option<FirstRecord>,
}

#[derive(Debug)]
struct FirstRecord {
    parent: i64,
    name: Vec<u8>,
    own_bytes: u64,
    own_allocated_bytes: u64,
}

impl DirProgress {
    /// Starts a directory. A root has no parent, and its name is its path.
    pub fn new(parent: Option<u64>, name: &[u8], status: &Statx) -> Self {
        let first = FirstRecord {
            parent: parent.map_or(NO_PARENT, |number| number as i64),
            name: name.to_vec(),
            own_bytes: status.stx_size,
            own_allocated_bytes: allocated_bytes_of(status),
        };
        Self {
            modified: modified(status),
            first: Some(first),
            ..Self::part(status.stx_uid)
        }
    }

    /// Starts a part of a directory with this owner.
    pub fn part(owner: u32) -> Self {
        Self {
            tally: Tally::new(owner),
            entries: 0,
            cookie: 0,
            pending: 0,
            elsewhere: Vec::new(),
            modified: (0, 0),
            first: None,
        }
    }

    /// Emits what was read since the last record. `number` is the directory's.
    pub fn emit(&mut self, number: u64, is_last: bool, emit: impl FnOnce(&DirRecord<'_>)) {
        let first = self.first.take();
        let pending = std::mem::take(&mut self.pending);
        let mut record = DirRecord {
            number,
            parent: NO_PARENT,
            pending: pending + i64::from(first.is_some()) - i64::from(is_last),
            ..DirRecord::default()
        };
        if let Some(first) = &first {
            record.parent = first.parent;
            record.name = &first.name;
            record.own_bytes = first.own_bytes;
            record.own_allocated_bytes = first.own_allocated_bytes;
        }
        self.tally.move_to(&mut record);
        emit(&record);
    }
}

pub fn modified(status: &Statx) -> (i64, u32) {
    (status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec)
}

/// The user of the survey, and the users that are trusted.
#[derive(Clone, Debug)]
pub struct User {
    pub uid: u32,
    /// Groups without members other than this user and root.
    pub private_groups: Vec<u32>,
}

impl User {
    /// Returns whether users other than this user and root can write in a directory.
    ///
    /// The group bits of the mode are the mask of the access control list (acl(5)). Without write access
    /// there, no entry of the list has it.
    pub fn is_writable_by_others(&self, status: &Statx, directory: BorrowedFd<'_>) -> bool {
        let mode = Mode::from_raw_mode(status.stx_mode.into());
        if !self.trusts(status.stx_uid) || mode.contains(Mode::WOTH) {
            return true;
        }
        mode.contains(Mode::WGRP)
            && (!self.private_groups.contains(&status.stx_gid) || grants_write(directory, self))
    }

    pub fn trusts(&self, uid: u32) -> bool {
        uid == ROOT || uid == self.uid
    }

    /// Returns whether the sticky bit lets this user remove only entries that the user owns.
    pub fn is_restricted_by_sticky_bit(&self, status: &Statx) -> bool {
        let mode = Mode::from_raw_mode(status.stx_mode.into());
        !self.is_root() && mode.contains(Mode::SVTX) && status.stx_uid != self.uid
    }

    pub fn is_root(&self) -> bool {
        self.uid == ROOT
    }

    /// Returns the flags of a directory that do not depend on its entries.
    pub fn dir_flags(&self, status: &Statx, directory: BorrowedFd<'_>) -> u32 {
        use rustix::fs::StatxAttributes as Attribute;
        let attributes = status.stx_attributes;
        let flags = [
            (attributes.contains(Attribute::IMMUTABLE), flag::IMMUTABLE),
            (attributes.contains(Attribute::APPEND), flag::APPEND_ONLY),
            (self.is_writable_by_others(status, directory), flag::SHARED),
            (self.is_restricted_by_sticky_bit(status), flag::STICKY),
        ];
        flags
            .iter()
            .filter(|(is_so, _)| *is_so)
            .fold(0, |flags, (_, flag)| flags | flag)
    }
}
