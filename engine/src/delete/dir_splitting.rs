//! Whether several workers in one directory are faster than one, by repeated measurement.
//!
//! It depends on the locks of the file system: on some the removals in one directory overlap, on
//! others the workers spend their time waiting for each other.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::ab_test::{AbTest, Backoff, Window};

const WINDOW: Window = Window {
    min_time: Duration::from_millis(6),
    min_removals: 2_048,
    max_time: Duration::from_secs(1),
};

/// The decision that all workers share.
pub struct DirSplitting {
    is_worthwhile: AtomicBool,
    backoff: Backoff,
    running_trials: AtomicUsize,
    /// Something else is tested or limits the speed, so a trial would measure that.
    is_suspended: AtomicBool,
}

/// A trial by one worker in one directory.
pub struct SplitTrial<'run> {
    splitting: &'run DirSplitting,
    /// The decision when the trial started.
    was_worthwhile: bool,
    test: AbTest,
    has_decided: bool,
}

impl DirSplitting {
    pub fn new() -> Self {
        Self {
            is_worthwhile: AtomicBool::new(false),
            backoff: Backoff::new(),
            running_trials: AtomicUsize::new(0),
            is_suspended: AtomicBool::new(false),
        }
    }

    /// Sets the decision that is known from the file system.
    pub fn set_prior(&self, is_worthwhile: Option<bool>) {
        if let Some(is_worthwhile) = is_worthwhile {
            self.is_worthwhile.store(is_worthwhile, Relaxed);
            self.backoff.start_prior();
        }
    }

    pub fn is_worthwhile(&self) -> bool {
        self.is_worthwhile.load(Relaxed)
    }

    pub fn is_trial_due(&self) -> bool {
        !self.is_suspended.load(Relaxed) && self.backoff.is_expired()
    }

    /// Suspends new trials, or permits them again.
    pub fn set_suspended(&self, is_suspended: bool) {
        self.is_suspended.store(is_suspended, Relaxed);
    }

    pub fn has_running_trial(&self) -> bool {
        self.running_trials.load(Relaxed) > 0
    }

    /// Starts a trial; `removed` counts the removals in the directory so far.
    pub fn start_trial(&self, now: Instant, removed: u64) -> SplitTrial<'_> {
        self.running_trials.fetch_add(1, Relaxed);
        SplitTrial {
            splitting: self,
            was_worthwhile: self.is_worthwhile(),
            test: AbTest::start(&WINDOW, now, removed),
            has_decided: false,
        }
    }
}

impl SplitTrial<'_> {
    /// Returns whether several workers are to work in the directory in the current window.
    pub fn is_splitting(&self) -> bool {
        self.was_worthwhile != self.test.is_candidate_active()
    }

    /// Records the removals in the directory so far, and whether other workers work in it.
    ///
    /// Returns whether the trial is over and has decided.
    pub fn update(&mut self, now: Instant, removed: u64, is_shared: bool) -> bool {
        let is_in_effect = is_shared == self.is_splitting();
        let Some(is_candidate_faster) = self.test.update(now, removed, is_in_effect) else {
            return false;
        };
        let is_worthwhile = self.was_worthwhile != is_candidate_faster;
        // Another worker's trial may have changed the decision meanwhile.
        let was_worthwhile = self.splitting.is_worthwhile.swap(is_worthwhile, Relaxed);
        self.splitting
            .backoff
            .restart(was_worthwhile != is_worthwhile);
        self.has_decided = true;
        true
    }
}

impl Drop for SplitTrial<'_> {
    fn drop(&mut self) {
        self.splitting.running_trials.fetch_sub(1, Relaxed);
        if !self.has_decided {
            self.splitting.backoff.postpone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a trial with these removals per millisecond by one worker and by two.
    fn decide(splitting: &DirSplitting, by_one: u64, by_two: u64) -> bool {
        let start = Instant::now();
        let mut trial = splitting.start_trial(start, 0);
        let mut removed = 0;
        for ms in 1..1_000 {
            removed += if trial.is_splitting() { by_two } else { by_one };
            let now = start + Duration::from_millis(ms);
            if trial.update(now, removed, trial.is_splitting()) {
                return splitting.is_worthwhile();
            }
        }
        panic!("the trial does not end");
    }

    #[test]
    fn faster_setting_is_chosen() {
        assert!(decide(&DirSplitting::new(), 100, 160));
        assert!(!decide(&DirSplitting::new(), 100, 50));
        assert!(!decide(&DirSplitting::new(), 100, 102));
    }

    #[test]
    fn prior_stays_until_the_alternative_is_clearly_faster() {
        for prior in [false, true] {
            let splitting = DirSplitting::new();
            splitting.set_prior(Some(prior));
            assert!(!splitting.is_trial_due());
            assert_eq!(decide(&splitting, 100, 102), prior);
            assert_eq!(decide(&splitting, 102, 100), prior);
        }
        let splitting = DirSplitting::new();
        splitting.set_prior(Some(true));
        assert!(!decide(&splitting, 100, 90));
        splitting.set_prior(None);
        assert!(!splitting.is_worthwhile());
    }

    #[test]
    fn decision_of_concurrent_trial_does_not_invert_the_result() {
        let splitting = DirSplitting::new();
        let start = Instant::now();
        let mut trial = splitting.start_trial(start, 0);
        assert!(decide(&splitting, 100, 160));
        let (mut removed, mut ms) = (0, 0);
        loop {
            ms += 1;
            removed += if trial.is_splitting() { 160 } else { 100 };
            let now = start + Duration::from_millis(ms);
            if trial.update(now, removed, trial.is_splitting()) {
                break;
            }
        }
        assert!(splitting.is_worthwhile());
    }

    #[test]
    fn no_trial_is_due_after_an_aborted_one_or_while_suspended() {
        let splitting = DirSplitting::new();
        assert!(splitting.is_trial_due() && !splitting.has_running_trial());
        let trial = splitting.start_trial(Instant::now(), 0);
        assert!(splitting.has_running_trial());
        drop(trial);
        assert!(!splitting.has_running_trial() && !splitting.is_trial_due());
        let splitting = DirSplitting::new();
        splitting.set_suspended(true);
        assert!(!splitting.is_trial_due());
        splitting.set_suspended(false);
        assert!(splitting.is_trial_due());
    }
}
