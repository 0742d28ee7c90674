//! Whether two workers in one directory are faster than one: measured, again and again.
//!
//! A file system decides that by where it locks: on some the removals of one directory overlap,
//! on others two workers spend their time waiting for each other.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::trial::{Trial, Trust, Window};

const WINDOW: Window = Window {
    time: Duration::from_millis(6),
    removals: 2_048,
    longest: Duration::from_millis(100),
};

/// What all workers know of it.
pub struct Splitting {
    pays: AtomicBool,
    trust: Trust,
}

/// A trial that one worker makes in one directory.
pub struct SplittingTrial {
    /// Whether it was thought to pay when it began.
    paid: bool,
    trial: Trial,
}

impl Splitting {
    pub fn new() -> Self {
        Self {
            pays: AtomicBool::new(false),
            trust: Trust::none(),
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
        self.trust.is_over()
    }

    fn decide(&self, pays: bool) {
        self.trust.renew(self.pays.swap(pays, Relaxed) != pays);
    }
}

impl SplittingTrial {
    pub fn begin(splitting: &Splitting, now: Instant, removed: u64) -> Self {
        Self {
            paid: splitting.pays(),
            trial: Trial::begin(&WINDOW, now, removed),
        }
    }

    /// Whether several are to work in the directory now.
    pub fn splits(&self) -> bool {
        self.paid != self.trial.is_other()
    }

    /// Takes note of the time, of all removals in the directory so far, and of whether others work
    /// in it; tells whether it is over, and has decided.
    pub fn go_on(
        &mut self,
        splitting: &Splitting,
        now: Instant,
        removed: u64,
        is_shared: bool,
    ) -> bool {
        let is_so = is_shared == self.splits();
        let Some(other_is_faster) = self.trial.go_on(now, removed, is_so) else {
            return false;
        };
        splitting.decide(self.paid != other_is_faster);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a trial with so many removals a millisecond by one worker and by two.
    fn decided(splitting: &Splitting, alone: u64, together: u64) -> bool {
        let begin = Instant::now();
        let mut trial = SplittingTrial::begin(splitting, begin, 0);
        let mut removed = 0;
        for ms in 1..1_000 {
            removed += if trial.splits() { together } else { alone };
            let now = begin + Duration::from_millis(ms);
            if trial.go_on(splitting, now, removed, trial.splits()) {
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
        let mut trial = SplittingTrial::begin(&splitting, begin, 0);
        assert!(decided(&splitting, 100, 160));
        let (mut removed, mut ms) = (0, 0);
        loop {
            ms += 1;
            removed += if trial.splits() { 160 } else { 100 };
            let now = begin + Duration::from_millis(ms);
            if trial.go_on(&splitting, now, removed, trial.splits()) {
                break;
            }
        }
        assert!(splitting.pays());
    }
}
