//! Emits the records of one walker in batches.

use std::ffi::CStr;
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rustix::fs::Statx;

use super::context::Context;
use super::dir_reader::DirProgress;
use super::records::{flag, Batch, DirRecord, NO_PARENT};
use super::tally::allocated_bytes_of;

pub struct Emitter<'a> {
    context: &'a Context,
    /// The records of the next message.
    pub batch: Batch,
    sent_at: Instant,
}

impl<'a> Emitter<'a> {
    pub fn new(context: &'a Context) -> Self {
        Self {
            context,
            batch: Batch::default(),
            sent_at: Instant::now(),
        }
    }

    /// Returns a number that no other directory has.
    pub fn next_number(&self) -> u64 {
        self.context.next_number.fetch_add(1, Relaxed)
    }

    /// Emits what was read of a directory since its last record.
    pub fn emit_record(&mut self, number: u64, progress: &mut DirProgress, is_last: bool) {
        progress.emit(number, is_last, |record| self.batch.add_dir_record(record));
        for (name, flags) in mem::take(&mut progress.elsewhere) {
            self.emit_not_entered(number, &name, flags, None);
        }
    }

    /// Emits a directory that is not read, with its own size if known.
    pub fn emit_not_entered(&mut self, parent: u64, name: &[u8], flags: u32, own: Option<&Statx>) {
        self.batch.add_dir_record(&DirRecord {
            number: self.next_number(),
            parent: parent as i64,
            name,
            own_bytes: own.map_or(0, |status| status.stx_size),
            own_allocated_bytes: own.map_or(0, allocated_bytes_of),
            flags,
            ..DirRecord::default()
        });
    }

    /// Emits a directory that is on another file system, as shown when it was opened.
    pub fn emit_elsewhere(&mut self, parent: u64, name: &CStr, flags: u32) {
        self.emit_not_entered(parent, name.to_bytes(), flag::ELSEWHERE | flags, None);
        self.emit_decrement(parent, 0);
    }

    /// Emits a root that is unreadable.
    pub fn emit_unreadable(&mut self, number: u64, path: &[u8]) {
        self.batch.add_dir_record(&DirRecord {
            number,
            parent: NO_PARENT,
            name: path,
            flags: flag::UNREADABLE,
            ..DirRecord::default()
        });
    }

    /// Emits that a directory has one pending record less.
    pub fn emit_decrement(&mut self, number: u64, flags: u32) {
        self.batch.add_dir_record(&DirRecord {
            number,
            parent: NO_PARENT,
            pending: -1,
            flags,
            ..DirRecord::default()
        });
    }

    /// Returns whether the batch is to be sent.
    pub fn is_due(&self) -> bool {
        self.batch.dir_record_count() >= self.context.limits.max_records
            || self.sent_at.elapsed() >= self.context.limits.send_interval
    }

    pub fn send(&mut self) {
        if let Some(message) = self.batch.take() {
            self.context.output.send(&message);
        }
        self.sent_at = Instant::now();
    }
}
