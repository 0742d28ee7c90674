//! Whether two workers in one directory are faster than one: measured, again and again.
//!
//! A file system decides that by where it locks: on some the removals of one directory overlap,
//! on others two workers spend their time waiting for each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long one way is tried. A file system that puts off some of the work (xfs: 256 inodes for
/// each processor) looks fast as long as it does.
const WINDOW: Duration = Duration::from_millis(6);
const WINDOW_REMOVALS: u64 = 2_048;
const LONGEST_WINDOW: Duration = Duration::from_millis(100);

/// What is not counted before it.
const SETTLING: Duration = Duration::from_millis(1);
const SETTLING_REMOVALS: u64 = 512;

/// For so long it is waited at most that those are done who worked the other way.
const LONGEST_SETTLING: Duration = Duration::from_millis(100);

/// Windows of a trial: one, two, one, two, one worker, the first of which is not counted: what a
/// directory costs in its first moments it does not cost afterwards.
const WINDOWS: usize = 5;

/// What must be won by another way of working to change to it.
const GAIN: f64 = 1.05;

/// A way that is so many times slower is not tried any longer.
const HOPELESS: f64 = 2.0;

/// A decision holds for so long, and for twice as long whenever it is found again.
const FIRST_TRUST: Duration = Duration::from_millis(250);
const LONGEST_TRUST: Duration = Duration::from_secs(16);

/// So long what is known of a file system is believed before it is tried: most directories are
/// empty by then.
const EXPECTED_TRUST: Duration = Duration::from_secs(2);

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
    /// When the window began, and how many had been removed by then.
    since: (Instant, u64),
    settled: Option<(Instant, u64)>,
    first: Rate,
    /// With one worker, and with several.
    sums: [Rate; 2],
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

    /// Takes what is known of the file system as the first decision.
    pub fn expect(&self, pays: Option<bool>) {
        if let Some(pays) = pays {
            self.pays.store(pays, Relaxed);
            let trust_ms = EXPECTED_TRUST.as_millis() as u64;
            self.trust_ms.store(trust_ms, Relaxed);
            self.trusted_until_ms
                .store(self.now_ms() + trust_ms, Relaxed);
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

    /// Decides by the removals in a second that one makes and that several make.
    fn decide(&self, alone: f64, together: f64) {
        let paid = self.pays();
        let is_new = if paid {
            alone > GAIN * together
        } else {
            together > GAIN * alone
        };
        self.pays.store(paid != is_new, Relaxed);
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
    pub fn begin(now: Instant, removed: u64) -> Self {
        Self {
            window: 0,
            since: (now, removed),
            settled: None,
            first: Rate::default(),
            sums: [Rate::default(); 2],
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
        let (began, before) = self.settled.unwrap_or(self.since);
        let tried = Rate::new(now - began, removed - before);
        match self.settled {
            None if (is_shared == self.splits() && tried.is(SETTLING, SETTLING_REMOVALS))
                || tried.is(LONGEST_SETTLING, 0) =>
            {
                self.settled = Some((now, removed));
            }
            Some(_) if tried.is(WINDOW, WINDOW_REMOVALS) || tried.is(LONGEST_WINDOW, 0) => {
                let sum = match self.window {
                    0 => &mut self.first,
                    window => &mut self.sums[window % 2],
                };
                sum.add(tried);
                self.window += 1;
                self.since = (now, removed);
                self.settled = None;
            }
            Some(_) if self.is_hopeless(tried) && !splitting.pays() => {
                splitting.decide(self.first.per_s(), tried.per_s());
                return true;
            }
            _ => (),
        }
        if self.window < WINDOWS {
            return false;
        }
        let [alone, together] = &self.sums;
        splitting.decide(alone.per_s(), together.per_s());
        true
    }

    /// Whether several are so slow that it need not be tried to its end.
    fn is_hopeless(&self, tried: Rate) -> bool {
        self.splits() && tried.is(WINDOW, 0) && HOPELESS * tried.per_s() < self.first.per_s()
    }
}

/// Removals in a time.
#[derive(Clone, Copy, Default)]
struct Rate {
    time: Duration,
    removals: u64,
}

impl Rate {
    fn new(time: Duration, removals: u64) -> Self {
        Self { time, removals }
    }

    fn add(&mut self, more: Self) {
        self.time += more.time;
        self.removals += more.removals;
    }

    /// Whether it is measured over so long and so many.
    fn is(&self, time: Duration, removals: u64) -> bool {
        self.time >= time && self.removals >= removals
    }

    fn per_s(&self) -> f64 {
        self.removals as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a trial with so many removals a millisecond by one worker and by two.
    fn decided(splitting: &Splitting, alone: u64, together: u64) -> bool {
        let begin = Instant::now();
        let mut trial = Trial::begin(begin, 0);
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
    fn a_slow_begin_does_not_decide() {
        // the first window removes hardly anything, whoever works in it
        let splitting = Splitting::new();
        let begin = Instant::now();
        let mut trial = Trial::begin(begin, 0);
        let mut removed = 0;
        for ms in 1..1_000 {
            let is_slow = ms <= (LONGEST_WINDOW + LONGEST_SETTLING).as_millis() as u64;
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
    fn what_is_only_put_off_is_not_won() {
        // the first 512 by two are fast, because the work is put off, and all others slow
        let splitting = Splitting::new();
        let begin = Instant::now();
        let mut trial = Trial::begin(begin, 0);
        let (mut removed, mut put_off) = (0, 0);
        let mut ms = 0;
        loop {
            ms += 1;
            removed += match trial.splits() {
                true if put_off < 512 => {
                    put_off += 128;
                    128
                }
                true => 32,
                false => {
                    put_off = 0;
                    64
                }
            };
            let now = begin + Duration::from_millis(ms);
            if trial.go_on(&splitting, now, removed, trial.splits()) {
                break;
            }
        }
        assert!(!splitting.pays());
    }

    #[test]
    fn what_is_hopeless_is_given_up_early() {
        let lasted = |together| {
            let splitting = Splitting::new();
            let begin = Instant::now();
            let mut trial = Trial::begin(begin, 0);
            let mut removed = 0;
            let mut ms = 0;
            loop {
                ms += 1;
                removed += if trial.splits() { together } else { 100 };
                let now = begin + Duration::from_millis(ms);
                if trial.go_on(&splitting, now, removed, trial.splits()) {
                    assert!(!splitting.pays());
                    return ms;
                }
            }
        };
        assert!(lasted(90) > 100);
        assert!(lasted(20) < 75);
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
