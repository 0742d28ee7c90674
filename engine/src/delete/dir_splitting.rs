//! Whether two workers in one directory are faster than one: measured, again and again.
//!
//! A file system decides that by where it locks: on some the removals of one directory overlap,
//! on others two workers spend their time waiting for each other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::ab_test::{Trial, Trust, Window};

const WINDOW: Window = Window {
    time: Duration::from_millis(6),
    removals: 2_048,
    longest: Duration::from_secs(1),
};

/// What all workers know of it.
pub struct Splitting {
    pays: AtomicBool,
    trust: Trust,
    /// Trials under way.
    trials: AtomicUsize,
    /// Something else is tried or decides how fast it goes: nothing can be learnt here.
    is_suspended: AtomicBool,
}

/// A trial that one worker makes in one directory.
pub struct SplittingTrial<'run> {
    splitting: &'run Splitting,
    /// Whether it was thought to pay when it began.
    paid: bool,
    trial: Trial,
    has_decided: bool,
}

impl Splitting {
    pub fn new() -> Self {
        Self {
            pays: AtomicBool::new(false),
            trust: Trust::none(),
            trials: AtomicUsize::new(0),
            is_suspended: AtomicBool::new(false),
        }
    }

    /// Takes what is known of the file system as the first decision.
    pub fn expect(&self, pays: Option<bool>) {
        if let Some(pays) = pays {
            self.pays.store(pays, Relaxed);
            self.trust.expect();
        }
    }

    pub fn pays(&self) -> bool {
        self.pays.load(Relaxed)
    }

    /// Whether it is time to find out (again).
    pub fn is_doubtful(&self) -> bool {
        !self.is_suspended.load(Relaxed) && self.trust.is_over()
    }

    /// Begins no trial as long as nothing can be learnt from one.
    pub fn suspend(&self, is_suspended: bool) {
        self.is_suspended.store(is_suspended, Relaxed);
    }

    pub fn is_tried(&self) -> bool {
        self.trials.load(Relaxed) > 0
    }

    /// Begins a trial where so many have been removed in a directory.
    pub fn try_it(&self, now: Instant, removed: u64) -> SplittingTrial<'_> {
        self.trials.fetch_add(1, Relaxed);
        SplittingTrial {
            splitting: self,
            paid: self.pays(),
            trial: Trial::begin(&WINDOW, now, removed),
            has_decided: false,
        }
    }
}

impl SplittingTrial<'_> {
    /// Whether several are to work in the directory now.
    pub fn splits(&self) -> bool {
        self.paid != self.trial.is_other()
    }

    /// Takes note of the time, of all removals in the directory so far, and of whether others work
    /// in it; tells whether it is over, and has decided.
    pub fn go_on(&mut self, now: Instant, removed: u64, is_shared: bool) -> bool {
        let is_so = is_shared == self.splits();
        let Some(other_is_faster) = self.trial.go_on(now, removed, is_so) else {
            return false;
        };
        let pays = self.paid != other_is_faster;
        let paid = self.splitting.pays.swap(pays, Relaxed);
        self.splitting.trust.renew(paid != pays);
        self.has_decided = true;
        true
    }
}

impl Drop for SplittingTrial<'_> {
    fn drop(&mut self) {
        self.splitting.trials.fetch_sub(1, Relaxed);
        if !self.has_decided {
            self.splitting.trust.postpone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a trial with so many removals a millisecond by one worker and by two.
    fn decided(splitting: &Splitting, alone: u64, together: u64) -> bool {
        let begin = Instant::now();
        let mut trial = splitting.try_it(begin, 0);
        let mut removed = 0;
        for ms in 1..1_000 {
            removed += if trial.splits() { together } else { alone };
            let now = begin + Duration::from_millis(ms);
            if trial.go_on(now, removed, trial.splits()) {
                return splitting.pays();
            }
        }
        panic!("a trial must end");
    }

    #[test]
    fn what_is_faster_is_chosen() {
        assert!(decided(&Splitting::new(), 100, 160));
        assert!(!decided(&Splitting::new(), 100, 50));
        assert!(!decided(&Splitting::new(), 100, 102));
    }

    #[test]
    fn what_is_expected_holds_until_the_other_is_clearly_faster() {
        for expected in [false, true] {
            let splitting = Splitting::new();
            splitting.expect(Some(expected));
            assert!(!splitting.is_doubtful());
            assert_eq!(decided(&splitting, 100, 102), expected);
            assert_eq!(decided(&splitting, 102, 100), expected);
        }
        let splitting = Splitting::new();
        splitting.expect(Some(true));
        assert!(!decided(&splitting, 100, 90));
        splitting.expect(None);
        assert!(!splitting.pays());
    }

    #[test]
    fn what_another_worker_has_found_meanwhile_does_not_turn_the_answer_round() {
        let splitting = Splitting::new();
        let begin = Instant::now();
        let mut trial = splitting.try_it(begin, 0);
        assert!(decided(&splitting, 100, 160));
        let (mut removed, mut ms) = (0, 0);
        loop {
            ms += 1;
            removed += if trial.splits() { 160 } else { 100 };
            let now = begin + Duration::from_millis(ms);
            if trial.go_on(now, removed, trial.splits()) {
                break;
            }
        }
        assert!(splitting.pays());
    }

    #[test]
    fn trials_are_counted_as_long_as_they_last_and_not_begun_beside_others() {
        let splitting = Splitting::new();
        assert!(splitting.is_doubtful() && !splitting.is_tried());
        let trial = splitting.try_it(Instant::now(), 0);
        assert!(splitting.is_tried());
        drop(trial);
        // one that came to no end is not begun at once again
        assert!(!splitting.is_tried() && !splitting.is_doubtful());
        let splitting = Splitting::new();
        splitting.suspend(true);
        assert!(!splitting.is_doubtful());
        splitting.suspend(false);
        assert!(splitting.is_doubtful());
    }
}
