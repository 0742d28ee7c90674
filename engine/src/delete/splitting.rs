//! Whether two workers in one directory are faster than one: measured, again and again.
//!
//! A file system decides that by where it locks: on some the removals of one directory overlap,
//! on others two workers spend their time waiting for each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long one way is tried: some hundred removals on a slow file system, thousands on a fast one.
const WINDOW: Duration = Duration::from_millis(6);

/// What is not counted before it.
const SETTLING: Duration = Duration::from_millis(1);

/// For so long it is waited at most that those are done who worked the other way.
const LONGEST_SETTLING: Duration = Duration::from_millis(100);

/// Windows of a trial: one, two, one, two, one worker, the first of which is not counted: what a
/// directory costs in its first moments it does not cost afterwards.
const WINDOWS: usize = 5;

/// What two workers must win over one to be worth it.
const GAIN: f64 = 1.05;

/// A decision holds for so long, and for twice as long whenever it is found again.
const FIRST_TRUST: Duration = Duration::from_millis(250);
const LONGEST_TRUST: Duration = Duration::from_secs(16);

/// What all workers know of it.
pub struct Splitting {
    began: Instant,
    pays: AtomicBool,
    trusted_until_ms: AtomicU64,
    trust_ms: AtomicU64,
}

/// A trial that one worker makes in one directory.
pub struct Trial {
    window: usize,
    since: Instant,
    settled: Option<(Instant, u64)>,
    /// Seconds and removals with one worker, and with several.
    sums: [(f64, u64); 2],
}

impl Splitting {
    pub fn new() -> Self {
        Self {
            began: Instant::now(),
            pays: AtomicBool::new(false),
            trusted_until_ms: AtomicU64::new(0),
            trust_ms: AtomicU64::new(FIRST_TRUST.as_millis() as u64),
        }
    }

    pub fn pays(&self) -> bool {
        self.pays.load(Relaxed)
    }

    /// Whether it is time to find out (again).
    pub fn is_doubtful(&self) -> bool {
        self.now_ms() >= self.trusted_until_ms.load(Relaxed)
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    fn decide(&self, pays: bool) {
        let is_new = self.pays.swap(pays, Relaxed) != pays;
        let longest = LONGEST_TRUST.as_millis() as u64;
        let trust_ms = if is_new {
            FIRST_TRUST.as_millis() as u64
        } else {
            (2 * self.trust_ms.load(Relaxed)).min(longest)
        };
        self.trust_ms.store(trust_ms, Relaxed);
        self.trusted_until_ms
            .store(self.now_ms() + trust_ms, Relaxed);
    }
}

impl Trial {
    pub fn begin(now: Instant) -> Self {
        Self {
            window: 0,
            since: now,
            settled: None,
            sums: [(0.0, 0); 2],
        }
    }

    /// Whether several are to work in the directory now.
    pub fn splits(&self) -> bool {
        self.window % 2 == 1
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
        let waited = now - self.since;
        let has_settled = is_shared == self.splits() || waited >= LONGEST_SETTLING;
        match self.settled {
            None if waited >= SETTLING && has_settled => self.settled = Some((now, removed)),
            Some((from, before)) if now - from >= WINDOW => {
                if self.window > 0 {
                    let sum = &mut self.sums[self.window % 2];
                    sum.0 += (now - from).as_secs_f64();
                    sum.1 += removed - before;
                }
                self.window += 1;
                self.since = now;
                self.settled = None;
            }
            _ => (),
        }
        if self.window < WINDOWS {
            return false;
        }
        let rate = |(seconds, removed): (f64, u64)| removed as f64 / seconds.max(1e-9);
        splitting.decide(rate(self.sums[1]) > GAIN * rate(self.sums[0]));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a trial with so many removals a millisecond by one worker and by two.
    fn decided(splitting: &Splitting, alone: u64, together: u64) -> bool {
        let begin = Instant::now();
        let mut trial = Trial::begin(begin);
        let mut removed = 0;
        for ms in 1..1_000 {
            removed += if trial.splits() { together } else { alone };
            if trial.go_on(
                splitting,
                begin + Duration::from_millis(ms),
                removed,
                trial.splits(),
            ) {
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
    fn a_slow_begin_does_not_decide() {
        // the first window removes hardly anything, whoever works in it
        let splitting = Splitting::new();
        let begin = Instant::now();
        let mut trial = Trial::begin(begin);
        let mut removed = 0;
        for ms in 1..1_000 {
            let is_slow = ms <= (WINDOW + SETTLING).as_millis() as u64;
            removed += if is_slow {
                1
            } else if trial.splits() {
                60
            } else {
                100
            };
            if trial.go_on(
                &splitting,
                begin + Duration::from_millis(ms),
                removed,
                trial.splits(),
            ) {
                break;
            }
        }
        assert!(!splitting.pays());
    }

    #[test]
    fn another_answer_is_not_trusted_for_long() {
        let splitting = Splitting::new();
        assert!(splitting.is_doubtful());
        for _ in 0..3 {
            decided(&splitting, 100, 160);
        }
        assert!(!splitting.is_doubtful());
        assert_eq!(splitting.trust_ms.load(Relaxed), 1_000);
        decided(&splitting, 100, 50);
        assert_eq!(splitting.trust_ms.load(Relaxed), 250);
    }
}
