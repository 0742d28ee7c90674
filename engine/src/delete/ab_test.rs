//! Comparing two ways of working by the rates they reach, and for how long the answer is trusted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// What is not counted before it.
const SETTLING: Duration = Duration::from_millis(1);
const SETTLING_REMOVALS: u64 = 512;

/// For so long it is waited at most that those are done who worked the other way.
const LONGEST_SETTLING: Duration = Duration::from_millis(100);

/// Windows of a trial: this way, the other, this, the other, this; the first is not counted: what
/// a directory costs in its first moments it does not cost afterwards.
const WINDOWS: usize = 5;

/// What must be won by another way of working to change to it; besides, it must be faster each time.
const GAIN: f64 = 1.05;

/// Another way that is so many times slower is not tried to its end.
const HOPELESS: f64 = 1.4;

/// Such a part of the removals of a window is needed at least to tell a rate from chance.
const FEWEST: u64 = 4;

/// A decision holds for so long, and for twice as long whenever it is found again.
const FIRST_TRUST: Duration = Duration::from_millis(250);
const LONGEST_TRUST: Duration = Duration::from_secs(16);

/// So long what is known of a file system is believed before it is tried: most directories are
/// empty by then.
const EXPECTED_TRUST: Duration = Duration::from_secs(2);

/// How long one way is tried: until both are reached, or the longest time. A file system that puts off
/// some of the work (xfs: 256 inodes for each processor) looks fast as long as it does.
pub struct Window {
    pub time: Duration,
    pub removals: u64,
    pub longest: Duration,
}

/// Until when something decided is not tried again.
pub struct Trust {
    began: Instant,
    until_ms: AtomicU64,
    length_ms: AtomicU64,
}

impl Trust {
    /// Nothing is known yet.
    pub fn none() -> Self {
        Self {
            began: Instant::now(),
            until_ms: AtomicU64::new(0),
            length_ms: AtomicU64::new(FIRST_TRUST.as_millis() as u64),
        }
    }

    /// Something is known from elsewhere.
    pub fn expect(&self) {
        self.extend(EXPECTED_TRUST.as_millis() as u64);
    }

    /// Whether it is time to find out (again).
    pub fn is_over(&self) -> bool {
        self.now_ms() >= self.until_ms.load(Relaxed)
    }

    /// It was tried, and another answer found than before, or the same.
    pub fn renew(&self, is_another: bool) {
        let (first, longest) = (FIRST_TRUST.as_millis(), LONGEST_TRUST.as_millis());
        self.extend(if is_another {
            first as u64
        } else {
            (2 * self.length_ms.load(Relaxed)).min(longest as u64)
        });
    }

    /// It could not be tried to the end: not at once again, for it may well happen again.
    pub fn postpone(&self) {
        let length_ms = self.length_ms.load(Relaxed);
        let pause_ms = length_ms.max(EXPECTED_TRUST.as_millis() as u64);
        self.until_ms.store(self.now_ms() + pause_ms, Relaxed);
    }

    fn extend(&self, length_ms: u64) {
        self.length_ms.store(length_ms, Relaxed);
        self.until_ms.store(self.now_ms() + length_ms, Relaxed);
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }
}

/// Whether another way of working is faster than this one.
pub struct Trial {
    each: &'static Window,
    /// When the window began, and how many had been removed by then.
    since: (Instant, u64),
    settled: Option<(Instant, u64)>,
    /// Of the windows that are over: this way, the other, this …
    rates: Vec<Rate>,
}

impl Trial {
    pub fn begin(each: &'static Window, now: Instant, removed: u64) -> Self {
        Self {
            each,
            since: (now, removed),
            settled: None,
            rates: Vec::with_capacity(WINDOWS),
        }
    }

    /// Whether it is the other way's turn.
    pub fn is_other(&self) -> bool {
        self.rates.len() % 2 == 1
    }

    /// Whether what is removed now is counted.
    pub fn is_settled(&self) -> bool {
        self.settled.is_some()
    }

    /// Takes note of the time, of all removals so far, and of whether all work as they are to;
    /// tells at its end whether the other way is faster.
    pub fn go_on(&mut self, now: Instant, removed: u64, is_so: bool) -> Option<bool> {
        let (began, before) = self.settled.unwrap_or(self.since);
        let tried = Rate::new(now - began, removed - before);
        if self.settled.is_none() {
            if (is_so && tried.is(SETTLING, SETTLING_REMOVALS)) || tried.is(LONGEST_SETTLING, 0) {
                self.settled = Some((now, removed));
            }
            return None;
        }
        let each = self.each;
        if self.is_hopeless(tried) {
            return Some(false);
        }
        if tried.is(each.time, each.removals) || tried.is(each.longest, 0) {
            if tried.removals < each.removals / FEWEST {
                return Some(false); // so slow that chance would decide
            }
            self.rates.push(tried);
            self.since = (now, removed);
            self.settled = None;
        }
        (self.rates.len() == WINDOWS).then(|| self.is_won())
    }

    /// Whether the other way is so slow that it need not be tried to its end.
    fn is_hopeless(&self, tried: Rate) -> bool {
        let this_way = self.rates.iter().step_by(2);
        let slowest = this_way.map(Rate::per_s).fold(f64::INFINITY, f64::min);
        self.is_other()
            && tried.is(self.each.time, self.each.removals / FEWEST)
            && HOPELESS * tried.per_s() < slowest
    }

    fn is_won(&self) -> bool {
        let counted = &self.rates[1..];
        let others = counted.iter().step_by(2);
        let this_way = counted.iter().skip(1).step_by(2);
        let (other, this): (Rate, Rate) = (others.clone().sum(), this_way.clone().sum());
        other.per_s() > GAIN * this.per_s()
            && others
                .zip(this_way)
                .all(|(other, this)| other.per_s() > this.per_s())
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

    /// Whether it is measured over so long and so many.
    fn is(&self, time: Duration, removals: u64) -> bool {
        self.time >= time && self.removals >= removals
    }

    fn per_s(&self) -> f64 {
        self.removals as f64 / self.time.as_secs_f64().max(1e-9)
    }
}

impl<'a> std::iter::Sum<&'a Rate> for Rate {
    fn sum<I: Iterator<Item = &'a Rate>>(rates: I) -> Self {
        rates.fold(Self::default(), |sum, rate| {
            Self::new(sum.time + rate.time, sum.removals + rate.removals)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: Window = Window {
        time: Duration::from_millis(6),
        removals: 2_048,
        longest: Duration::from_millis(100),
    };

    /// Plays a trial; `rate` tells the removals of a millisecond of this way, or of the other.
    /// Returns the answer, and after how many milliseconds it came.
    fn played(mut rate: impl FnMut(u64, bool) -> u64) -> (bool, u64) {
        let begin = Instant::now();
        let mut trial = Trial::begin(&EACH, begin, 0);
        let mut removed = 0;
        for ms in 1..10_000 {
            removed += rate(ms, trial.is_other());
            let now = begin + Duration::from_millis(ms);
            if let Some(answer) = trial.go_on(now, removed, true) {
                return (answer, ms);
            }
        }
        panic!("a trial must end");
    }

    #[test]
    fn the_other_way_must_be_clearly_faster() {
        for (other, is_faster) in [
            (160, true),
            (106, true),
            (104, false),
            (96, false),
            (50, false),
        ] {
            let (answer, _) = played(|_, is_other| if is_other { other } else { 100 });
            assert_eq!(answer, is_faster, "{other}");
        }
    }

    #[test]
    fn a_slow_begin_does_not_decide() {
        // the first window removes few, whichever way it works
        let slow_ms = (EACH.longest + LONGEST_SETTLING).as_millis() as u64;
        let (answer, _) = played(|ms, is_other| match is_other {
            _ if ms <= slow_ms => 6,
            true => 60,
            false => 100,
        });
        assert!(!answer);
    }

    #[test]
    fn what_was_faster_once_and_slower_once_is_not_faster() {
        let mut windows = 0;
        let mut was_other = false;
        let (answer, _) = played(|_, is_other| {
            windows += u64::from(is_other && !was_other);
            was_other = is_other;
            match (is_other, windows) {
                (true, 1) => 300,
                (true, _) => 90,
                (false, _) => 100,
            }
        });
        assert!(!answer);
    }

    #[test]
    fn where_hardly_anything_is_removed_chance_decides_nothing() {
        // three in a second one way, and six the other
        let (answer, lasted_ms) = played(|ms, is_other| match is_other {
            true => u64::from(ms % 160 == 0),
            false => u64::from(ms % 330 == 0),
        });
        assert!(!answer);
        // nor is the other way so much as tried
        assert!(lasted_ms < 2 * (EACH.longest + LONGEST_SETTLING).as_millis() as u64);
        // neither does a moment in which the other way stood
        let (answer, lasted_ms) = played(|ms, is_other| match is_other {
            true if ms % 50 < 20 => 0,
            true => 20,
            false => 10,
        });
        assert!(answer && lasted_ms > 100);
    }

    #[test]
    fn what_is_only_put_off_is_not_won() {
        // the first 512 of the other way are fast, because the work is put off, all others slow
        let mut put_off = 0;
        let (answer, _) = played(|_, is_other| match is_other {
            true if put_off < 512 => {
                put_off += 128;
                128
            }
            true => 32,
            false => {
                put_off = 0;
                64
            }
        });
        assert!(!answer);
    }

    #[test]
    fn what_is_hopeless_is_given_up_early() {
        let lasted = |other| played(|_, is_other| if is_other { other } else { 100 }).1;
        assert!(lasted(90) > 100);
        assert!(lasted(60) < 50);
    }

    #[test]
    fn another_answer_is_not_trusted_for_long() {
        let trust = Trust::none();
        assert!(trust.is_over());
        for expected_ms in [250, 500, 1_000] {
            trust.renew(expected_ms == 250);
            assert!(!trust.is_over());
            assert_eq!(trust.length_ms.load(Relaxed), expected_ms);
        }
        for _ in 0..8 {
            trust.renew(false);
        }
        assert_eq!(trust.length_ms.load(Relaxed), 16_000);
        trust.renew(true);
        assert_eq!(trust.length_ms.load(Relaxed), 250);
        trust.expect();
        assert_eq!(trust.length_ms.load(Relaxed), 2_000);
    }

    #[test]
    fn what_could_not_be_tried_is_known_no_better() {
        let trust = Trust::none();
        trust.postpone();
        assert!(!trust.is_over());
        assert_eq!(trust.length_ms.load(Relaxed), 250);
    }
}
