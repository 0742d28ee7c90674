//! Many removals in a row.

use std::ffi::CStr;
use std::time::Instant;

use rustix::fd::BorrowedFd;
use rustix::fs::AtFlags;
use rustix::io::Result;

use super::{Call, Calls};

/// Removals that follow each other, a few of them timed at once: where one takes four microseconds,
/// looking at the clock before and after each is a fiftieth of the whole. What lies between them
/// counts as theirs; it takes less than the clock does.
pub struct Unlinks<'calls> {
    calls: &'calls Calls,
    began: Option<Instant>,
    made: u32,
}

/// What a count of calls may be ahead of their time.
const TIMED_AT_ONCE: u32 = 16;

impl<'calls> Unlinks<'calls> {
    pub fn new(calls: &'calls Calls) -> Self {
        Self {
            calls,
            began: None,
            made: 0,
        }
    }

    /// Removes a name that is not a directory's.
    #[inline]
    pub fn unlink(&mut self, above: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        self.began.get_or_insert_with(Instant::now);
        let result = rustix::fs::unlinkat(above, name, AtFlags::empty());
        self.calls.add_call(Call::Unlinkat, &result);
        self.made += 1;
        if self.made == TIMED_AT_ONCE {
            self.interrupt();
        }
        result
    }

    /// Ends the time of those made: something else comes next.
    #[inline]
    pub fn interrupt(&mut self) {
        if let Some(began) = self.began.take() {
            self.calls.add_time(Call::Unlinkat, began);
            self.made = 0;
        }
    }
}

impl Drop for Unlinks<'_> {
    fn drop(&mut self) {
        self.interrupt();
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
    fn all_are_counted_and_timed_but_not_what_comes_between() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = File::open(scratch.path()).unwrap();
        let calls = Calls::new(false);
        let began = Instant::now();
        let mut unlinks = calls.unlinks();
        for _ in 0..2 * TIMED_AT_ONCE + 1 {
            assert!(unlinks.unlink(directory.as_fd(), c"nothing").is_err());
        }
        let so_far = calls.count(Call::Unlinkat);
        assert_eq!(so_far.calls, u64::from(2 * TIMED_AT_ONCE + 1));
        assert_eq!(so_far.errors, so_far.calls);
        unlinks.interrupt();
        let after_all = calls.count(Call::Unlinkat).nanoseconds;
        assert!(0 < so_far.nanoseconds && so_far.nanoseconds < after_all);
        let took = began.elapsed();
        sleep(Duration::from_millis(20));
        unlinks.interrupt();
        drop(unlinks);
        assert_eq!(calls.count(Call::Unlinkat).nanoseconds, after_all);
        assert!(u128::from(after_all) <= took.as_nanos());
    }
}
