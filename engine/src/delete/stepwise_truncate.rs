//! Removing large files so that others need not wait: their blocks are given back in steps.

use std::ffi::CStr;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FileType, Stat};
use rustix::io::Result;

use super::file_systems::FileSystem;
use super::remover::Hands;

/// So much of a large file is given back at once where others are not to wait.
const STEP_BYTES: u64 = 256 << 20;

impl Hands<'_> {
    /// Removes a name; the blocks of a large file that nobody else uses are given back in steps.
    pub(super) fn remove_gently(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        let calls = &self.tally.calls;
        let is_large = calls
            .stat(directory, name)
            .is_ok_and(|status| is_file(&status) && allocated_bytes(&status) > STEP_BYTES);
        let opened = if is_large {
            calls.open_file(directory, name).ok()
        } else {
            None
        };
        let Some(file) = opened else {
            return calls.unlink(directory, name);
        };
        let before = calls.fstat(file.as_fd());
        let result = calls.unlink(directory, name);
        if let (Ok(before), Ok(())) = (before, result) {
            self.give_back(file.as_fd(), &before);
        }
        self.tally.calls.close(file);
        result
    }

    /// Cuts a file that was just unlinked, step by step, as long as it is nobody's: without a
    /// name, and open nowhere else. A reader who still had it would see it shrink.
    fn give_back(&mut self, file: BorrowedFd<'_>, before: &Stat) {
        let calls = &self.tally.calls;
        let is_known = FileSystem::of(file, calls).is_ok_and(FileSystem::knows_who_has_a_file);
        let is_nameless = calls
            .fstat(file)
            .is_ok_and(|now| is_file(&now) && now.st_nlink == 0);
        if !is_known || before.st_nlink != 1 || !is_nameless || !calls.lease(file) {
            return;
        }
        let mut length = before.st_size as u64;
        // Of a sparse file the blocks count, not the length.
        let steps = allocated_bytes(before).div_ceil(STEP_BYTES).max(1);
        let step = length.div_ceil(steps).max(1);
        while length > step && self.tally.calls.is_leased(file) {
            length -= step;
            let is_cut = self.tally.calls.truncate(file, length).is_ok();
            if !is_cut || self.wait().is_err() {
                break; // closing gives the rest back at once
            }
        }
    }
}

fn is_file(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
}

fn allocated_bytes(status: &Stat) -> u64 {
    status.st_blocks as u64 * 512
}
