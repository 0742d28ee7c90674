//! One directory being read: what is told of it, and what is special about it.

use rustix::fd::BorrowedFd;
use rustix::fs::{Mode, Statx};

use super::acl::grants_write;
use super::records::{flag, Piece, NO_PARENT};
use super::tally::{allocated_bytes_of, Tally};

const ROOT: u32 = 0;

/// A directory of which not all is told, or a part of one that somebody else tells.
#[derive(Debug)]
pub struct Reading {
    pub tally: Tally,
    /// Names read so far.
    pub entries: u64,
    /// Where reading goes on.
    pub cookie: u64,
    /// Pieces that are to come besides since the last one: one for each subdirectory, one for
    /// each part that others read.
    pub pending: i64,
    /// Subdirectories that are not entered, and why.
    pub elsewhere: Vec<(Vec<u8>, u32)>,
    /// Modification time when reading began, in seconds and nanoseconds.
    pub modified: (i64, u32),
    /// What only the first piece tells; `None` once it has been told.
    first: Option<First>,
}

#[derive(Debug)]
struct First {
    parent: i64,
    name: Vec<u8>,
    own_bytes: u64,
    own_allocated_bytes: u64,
}

impl Reading {
    /// Begins a directory; a root has no parent, and its whole path for a name.
    pub fn new(parent: Option<u64>, name: &[u8], status: &Statx) -> Self {
        let first = First {
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

    /// Begins a part of a directory of this owner.
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

    /// Hands over what was read since the last time, `number` being the directory's.
    pub fn tell(&mut self, number: u64, is_last: bool, tell: impl FnOnce(&Piece<'_>)) {
        let first = self.first.take();
        let pending = std::mem::take(&mut self.pending);
        let mut piece = Piece {
            number,
            parent: NO_PARENT,
            pending: pending + i64::from(first.is_some()) - i64::from(is_last),
            ..Piece::default()
        };
        if let Some(first) = &first {
            piece.parent = first.parent;
            piece.name = &first.name;
            piece.own_bytes = first.own_bytes;
            piece.own_allocated_bytes = first.own_allocated_bytes;
        }
        self.tally.move_to(&mut piece);
        tell(&piece);
    }
}

pub fn modified(status: &Statx) -> (i64, u32) {
    (status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec)
}

/// Who counts, and whom that user trusts.
#[derive(Clone, Debug)]
pub struct User {
    pub uid: u32,
    /// Groups in which nobody is but this user and root.
    pub private_groups: Vec<u32>,
}

impl User {
    /// Tells whether somebody else than this user and root can write in a directory.
    ///
    /// The group bits of the mode are the mask of the access control list (acl(5)): without write
    /// access there, no entry of the list has it.
    pub fn is_shared(&self, status: &Statx, directory: BorrowedFd<'_>) -> bool {
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

    /// Tells whether only the owner of an entry may remove it, and the directory's is another.
    pub fn is_kept_off(&self, status: &Statx) -> bool {
        let mode = Mode::from_raw_mode(status.stx_mode.into());
        !self.is_root() && mode.contains(Mode::SVTX) && status.stx_uid != self.uid
    }

    pub fn is_root(&self) -> bool {
        self.uid == ROOT
    }

    /// The flags of a directory that do not depend on what is in it.
    pub fn flags_of(&self, status: &Statx, directory: BorrowedFd<'_>) -> u32 {
        use rustix::fs::StatxAttributes as Attribute;
        let attributes = status.stx_attributes;
        let signs = [
            (attributes.contains(Attribute::IMMUTABLE), flag::IMMUTABLE),
            (attributes.contains(Attribute::APPEND), flag::APPEND_ONLY),
            (self.is_shared(status, directory), flag::SHARED),
            (self.is_kept_off(status), flag::STICKY),
        ];
        signs
            .iter()
            .filter(|(is_so, _)| *is_so)
            .fold(0, |flags, (_, flag)| flags | flag)
    }
}
