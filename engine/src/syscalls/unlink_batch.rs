//! Successive removals, timed together.

use std::ffi::CStr;
use std::time::Instant;

use rustix::fd::BorrowedFd;
use rustix::fs::AtFlags;
use rustix::io::Result;

use super::{Syscall, Syscalls};

/// Successive removals, of which a few are timed together: two clock readings are a fiftieth of a
/// removal of four microseconds. The time between the removals is included; it is shorter than the
/// clock readings.
pub struct UnlinkBatch<'calls> {
    calls: &'calls Syscalls,
    began: Option<Instant>,
    calls_made: u32,
}

/// Calls that are counted before their time is added.
const MAX_TIMED_TOGETHER: u32 = 16;

impl<'calls> UnlinkBatch<'calls> {
    pub fn new(calls: &'calls Syscalls) -> Self {
        Self {
            calls,
            began: None,
            calls_made: 0,
        }
    }

    /// Removes a name that is not a directory.
    #[inline]
    pub fn unlink(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        self.began.get_or_insert_with(Instant::now);
        let result = rustix::fs::unlinkat(parent, name, AtFlags::empty());
        self.calls.add_call(Syscall::Unlinkat, &result);
        self.calls_made += 1;
        if self.calls_made == MAX_TIMED_TOGETHER {
            self.flush_time();
        }
        result
    }

    /// Adds the time of the calls so far. Must be called before any other work.
    #[inline]
    pub fn flush_time(&mut self) {
        if let Some(began) = self.began.take() {
            self.calls.add_time(Syscall::Unlinkat, began);
            self.calls_made = 0;
        }
    }
}

impl Drop for UnlinkBatch<'_> {
    fn drop(&mut self) {
        self.flush_time();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_are_counted_and_timed_without_interruptions() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = File::open(scratch.path()).unwrap();
        let calls = Syscalls::new(false);
        let began = Instant::now();
        let mut unlinks = calls.unlink_batch();
        for _ in 0..2 * MAX_TIMED_TOGETHER + 1 {
            assert!(unlinks.unlink(directory.as_fd(), c"nothing").is_err());
        }
        let so_far = calls.count(Syscall::Unlinkat);
        assert_eq!(so_far.calls, u64::from(2 * MAX_TIMED_TOGETHER + 1));
        assert_eq!(so_far.errors, so_far.calls);
        unlinks.flush_time();
        let after_all = calls.count(Syscall::Unlinkat).nanoseconds;
        assert!(0 < so_far.nanoseconds && so_far.nanoseconds < after_all);
        let took = began.elapsed();
        sleep(Duration::from_millis(20));
        unlinks.flush_time();
        drop(unlinks);
        assert_eq!(calls.count(Syscall::Unlinkat).nanoseconds, after_all);
        assert!(u128::from(after_all) <= took.as_nanos());
    }
}
