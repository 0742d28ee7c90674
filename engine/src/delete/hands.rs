//! Removing names, one after the other, as the options and the brake permit.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FileType, StatxFlags};
use rustix::io::{Errno, Result};

use super::brake::{Brake, Turn};
use super::names::{Chunk, Named};
use crate::calls::Calls;
use crate::filters::Filters;
use crate::foreign::is_open_nowhere_else;

/// Everything is to end: the job was cancelled.
#[derive(Debug)]
pub struct Stopped;

/// A name that could not be removed, what was tried, and why not.
pub struct Failure {
    pub named: Named,
    pub operation: &'static str,
    pub error: Errno,
}

/// So much of a large file is given back at once where others are not to wait: some hundredths
/// of a second on a disk.
const STEP_BYTES: u64 = 256 << 20;

/// One worker's counts.
pub struct Tally {
    pub calls: Calls,
    pub files: AtomicU64,
    pub directories: AtomicU64,
}

impl Tally {
    pub fn new(calls: Calls) -> Self {
        Self {
            calls,
            files: AtomicU64::new(0),
            directories: AtomicU64::new(0),
        }
    }

    pub fn add_directory(&self) {
        add(&self.directories);
    }
}

fn add(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed); // only its owner writes
}

/// What a worker removes names with.
pub struct Hands<'run> {
    pub brake: &'run Brake,
    pub filters: &'run Filters,
    pub tally: &'run Tally,
    pub turn: Turn,
}

impl Hands<'_> {
    /// Waits as long as there is a reason to.
    pub fn wait(&mut self) -> std::result::Result<(), Stopped> {
        let is_permitted = self.brake.permits(&mut self.turn);
        is_permitted.then_some(()).ok_or(Stopped)
    }

    /// The same before a removal.
    pub fn wait_to_remove(&mut self) -> std::result::Result<(), Stopped> {
        let is_permitted = self.brake.permits_removal(&mut self.turn);
        is_permitted.then_some(()).ok_or(Stopped)
    }

    /// Removes names of one directory; returns how many it has removed.
    pub fn remove(
        &mut self,
        directory: BorrowedFd<'_>,
        chunk: &Chunk,
        range: Range<usize>,
        failures: &mut Vec<Failure>,
    ) -> std::result::Result<u64, Stopped> {
        let mut removed = 0;
        for &named in &chunk.files[range] {
            let name = chunk.name(named);
            if self.filters.need_status() {
                match self.tally.calls.statx(directory, name, Filters::MASK) {
                    Ok(status) if self.filters.match_status(&status) => (),
                    Ok(_) | Err(Errno::NOENT) => continue,
                    Err(error) => {
                        let operation = "stat";
                        failures.push(Failure {
                            named,
                            operation,
                            error,
                        });
                        continue;
                    }
                }
            }
            self.wait_to_remove()?;
            let result = if self.brake.is_gentle() {
                self.remove_gently(directory, name)
            } else {
                self.tally.calls.unlink(directory, name)
            };
            match result {
                Ok(()) => {
                    removed += 1;
                    add(&self.tally.files);
                }
                // Somebody else has removed it, or has put a directory in its place: that one
                // is found when the directory turns out not to be empty.
                Err(Errno::NOENT | Errno::ISDIR) => (),
                Err(error) => {
                    let operation = "remove";
                    failures.push(Failure {
                        named,
                        operation,
                        error,
                    });
                }
            }
        }
        Ok(removed)
    }

    /// Removes a name; the blocks of a large file that nobody else uses are given back in steps.
    fn remove_gently(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        let calls = &self.tally.calls;
        let mask = StatxFlags::TYPE | StatxFlags::BLOCKS;
        let is_large = calls.statx(directory, name, mask).is_ok_and(|status| {
            FileType::from_raw_mode(u32::from(status.stx_mode)) == FileType::RegularFile
                && status.stx_blocks * 512 > STEP_BYTES
        });
        let opened = if is_large {
            calls.open_file(directory, name).ok()
        } else {
            None
        };
        let result = calls.unlink(directory, name);
        let Some(file) = opened else {
            return result;
        };
        // Without a name, and open nowhere else, it is nobody's any more: a reader who still
        // had it, or another link to it, would see it shrink.
        let status = calls.fstat(file.as_fd());
        if let (Ok(()), Ok(status)) = (result, status) {
            let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
            if is_file && status.st_nlink == 0 && is_open_nowhere_else(file.as_fd()) {
                let mut length = status.st_size as u64;
                while length > STEP_BYTES {
                    length -= STEP_BYTES;
                    let is_cut = self.tally.calls.truncate(file.as_fd(), length).is_ok();
                    if !is_cut || self.wait().is_err() {
                        break; // closing gives the rest back at once
                    }
                }
            }
        }
        self.tally.calls.close(file);
        result
    }
}
