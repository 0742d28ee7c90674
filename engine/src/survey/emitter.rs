//! Emits the records of one walker in batches, and writes the batches of all walkers.

use std::ffi::CStr;
use std::io::{ErrorKind, Write};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Mutex;
use std::time::Instant;
use std::{mem, process};

use rustix::fs::Statx;
use serde::Serialize;

use super::dir_progress::{allocated_bytes_of, DirProgress};
use super::histogram::Histogram;
use super::records::{flag, Batch, DirRecord, Matched, FORMAT};
use super::totals::Totals;
use super::Context;

pub struct Emitter<'a> {
    context: &'a Context,
    /// The records of the next message.
    pub batch: Batch,
    /// Of the directory that is being read; `None` if there are no classes.
    pub histogram: Option<Histogram<'a>>,
    sent_at: Instant,
}

impl<'a> Emitter<'a> {
    pub fn new(context: &'a Context) -> Self {
        let classes = context.classes.as_ref();
        Self {
            context,
            batch: Batch::default(),
            histogram: classes.map(|classes| Histogram::new(classes, &context.labels)),
            sent_at: Instant::now(),
        }
    }

    /// Returns a number that no other directory has.
    pub fn next_number(&self) -> u64 {
        self.context.next_number.fetch_add(1, Relaxed)
    }

    /// Emits what was read of a directory since its last record.
    pub fn emit_record(&mut self, progress: &mut DirProgress, is_last: bool) {
        let record = progress.take_record(is_last);
        let number = record.number;
        self.batch.dir_records.push(record);
        let mut matched = mem::take(&mut progress.matched);
        if matched != Matched::default() {
            matched.directory = number;
            self.batch.matched.push(matched);
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.move_to(number, &mut self.batch.cells);
        }
    }

    /// Emits a directory that is not read, with its own size if known.
    pub fn emit_not_entered(&mut self, parent: i64, name: &[u8], flags: u32, own: Option<&Statx>) {
        self.batch.dir_records.push(DirRecord {
            number: self.next_number(),
            parent,
            name: name.to_vec(),
            own_bytes: own.map_or(0, |status| status.stx_size),
            own_allocated_bytes: own.map_or(0, allocated_bytes_of),
            flags,
            ..DirRecord::default()
        });
    }

    /// Emits a directory that is on another file system, as shown when it was opened.
    pub fn emit_elsewhere(&mut self, parent: u64, name: &CStr, flags: u32) {
        self.emit_not_entered(
            parent as i64,
            name.to_bytes(),
            flag::ELSEWHERE | flags,
            None,
        );
        self.emit_decrement(parent, 0);
    }

    /// Emits that a directory has one pending record less.
    pub fn emit_decrement(&mut self, number: u64, flags: u32) {
        self.batch.dir_records.push(DirRecord {
            pending: -1,
            flags,
            ..DirRecord::new(number)
        });
    }

    /// Returns whether the batch is to be sent.
    pub fn is_due(&self) -> bool {
        self.batch.dir_records.len() >= self.context.limits.max_records
            || self.sent_at.elapsed() >= self.context.limits.send_interval
    }

    pub fn send(&mut self) {
        if !self.batch.is_empty() {
            (self.context.output).send_batch(&mem::take(&mut self.batch));
        }
        self.sent_at = Instant::now();
    }
}

const LENGTH_BYTES: usize = 4;

/// Writes messages, each after its length as a little-endian number of 32 bits, or only sums.
pub struct Output {
    writer: Mutex<Box<dyn Write + Send>>,
    totals: Option<Mutex<Totals>>,
}

impl Output {
    /// Writes the format as the first message, or adds up everything that is sent.
    pub fn new(writer: Box<dyn Write + Send>, adds_up: bool) -> Self {
        let output = Self {
            writer: Mutex::new(writer),
            totals: adds_up.then(Mutex::default),
        };
        if !adds_up {
            output.send(&FORMAT);
        }
        output
    }

    pub fn send_batch(&self, batch: &Batch) {
        match &self.totals {
            Some(totals) => totals.lock().expect("no walker panics").add(batch),
            None => self.send(batch),
        }
    }

    /// Ends the messages with nil, or writes the sums. Returns whether everything was counted.
    pub fn finish(&self) -> bool {
        let Some(totals) = &self.totals else {
            self.send(&());
            return true;
        };
        let totals = totals.lock().expect("no walker panics");
        self.write(totals.to_string().as_bytes());
        totals.is_complete()
    }

    /// Writes and flushes one message in MessagePack. Messages of several walkers do not mix.
    ///
    /// Exits the process if it cannot be written, silently if the reader has closed the pipe.
    pub fn send(&self, message: &impl Serialize) {
        let mut framed = vec![0; LENGTH_BYTES];
        rmp_serde::encode::write(&mut framed, message).expect("a write to memory does not fail");
        let length = (framed.len() - LENGTH_BYTES) as u32;
        framed[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        self.write(&framed);
    }

    fn write(&self, bytes: &[u8]) {
        let mut writer = self.writer.lock().expect("no walker panics");
        if let Err(error) = writer.write_all(bytes).and_then(|()| writer.flush()) {
            if error.kind() != ErrorKind::BrokenPipe {
                eprintln!("tui-fs-engine: cannot write the records: {error}");
            }
            process::exit(1);
        }
    }
}
