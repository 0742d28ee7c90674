//! Gentle removal of large files: their blocks are freed in steps, so that others can use the disk.

use std::ffi::CStr;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FileType, Stat};
use rustix::io::Result;

use super::file_systems::FileSystem;
use super::remover::Remover;

/// Size of a step. Smaller files are removed as usual.
const STEP_BYTES: u64 = 256 << 20;

impl Remover<'_> {
    /// Removes a name. If it was the last one of a large file that is not open, truncates the file
    /// in steps.
    pub(super) fn unlink_truncating(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<()> {
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
            self.truncate_in_steps(file.as_fd(), &before);
        }
        self.tally.calls.close(file);
        result
    }

    /// Truncates an unlinked file in steps while it has no name and no other open descriptor. A
    /// process that reads the file would see it shrink.
    fn truncate_in_steps(&mut self, file: BorrowedFd<'_>, before: &Stat) {
        let calls = &self.tally.calls;
        let is_reliable = FileSystem::of(file, calls).is_ok_and(|known| known.has_reliable_leases);
        let is_nameless = calls
            .fstat(file)
            .is_ok_and(|now| is_file(&now) && now.st_nlink == 0);
        if !is_reliable || before.st_nlink != 1 || !is_nameless || !calls.lease(file) {
            return;
        }
        let mut length = before.st_size as u64;
        // The cost of a step depends on blocks, and a sparse file has few for its length.
        let steps = allocated_bytes(before).div_ceil(STEP_BYTES).max(1);
        let step = length.div_ceil(steps).max(1);
        while length > step && self.tally.calls.is_leased(file) {
            length -= step;
            let is_truncated = self.tally.calls.truncate(file, length).is_ok();
            if !is_truncated || self.wait().is_err() {
                break; // close() frees the rest
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
