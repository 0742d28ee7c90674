//! Telling what one walker finds, a batch at a time.

use std::ffi::CStr;
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rustix::fs::Statx;

use super::context::Shared;
use super::dir_reader::Reading;
use super::records::{flag, Batch, Piece, NO_PARENT};
use super::tally::allocated_bytes_of;

pub struct Teller<'a> {
    shared: &'a Shared,
    /// What is told with the next message.
    pub batch: Batch,
    told: Instant,
}

impl<'a> Teller<'a> {
    pub fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            batch: Batch::default(),
            told: Instant::now(),
        }
    }

    /// A number that no other directory has.
    pub fn number(&self) -> u64 {
        self.shared.number.fetch_add(1, Relaxed)
    }

    /// Tells what was read of a directory since the last time.
    pub fn piece(&mut self, number: u64, reading: &mut Reading, is_last: bool) {
        reading.tell(number, is_last, |piece| self.batch.add_piece(piece));
        for (name, flags) in mem::take(&mut reading.elsewhere) {
            self.not_entered(number, &name, flags, None);
        }
    }

    /// Tells a directory that is not read, with its own size as far as that is known.
    pub fn not_entered(&mut self, parent: u64, name: &[u8], flags: u32, own: Option<&Statx>) {
        self.batch.add_piece(&Piece {
            number: self.number(),
            parent: parent as i64,
            name,
            own_bytes: own.map_or(0, |status| status.stx_size),
            own_allocated_bytes: own.map_or(0, allocated_bytes_of),
            flags,
            ..Piece::default()
        });
    }

    /// Tells a directory of which it turned out only when it was opened that it is elsewhere.
    pub fn entered_elsewhere(&mut self, parent: u64, name: &CStr, flags: u32) {
        self.not_entered(parent, name.to_bytes(), flag::ELSEWHERE | flags, None);
        self.one_less(parent, 0);
    }

    /// Tells a directory that could be read in vain only.
    pub fn unreadable(&mut self, number: u64, path: &[u8]) {
        self.batch.add_piece(&Piece {
            number,
            parent: NO_PARENT,
            name: path,
            flags: flag::UNREADABLE,
            ..Piece::default()
        });
    }

    /// Tells that one piece less is to come of a directory than was told.
    pub fn one_less(&mut self, number: u64, flags: u32) {
        self.batch.add_piece(&Piece {
            number,
            parent: NO_PARENT,
            pending: -1,
            flags,
            ..Piece::default()
        });
    }

    /// Whether it is time to send what was found.
    pub fn is_due(&self) -> bool {
        self.batch.pieces() >= self.shared.limits.pieces_told
            || self.told.elapsed() >= self.shared.limits.tell_every
    }

    pub fn send(&mut self) {
        if let Some(message) = self.batch.take() {
            self.shared.output.send(&message);
        }
        self.told = Instant::now();
    }
}
