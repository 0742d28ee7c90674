//! A/B tests by throughput, and how long their results stay valid.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A window is measured after this time and this number of removals.
const WARMUP: Duration = Duration::from_millis(1);
const WARMUP_REMOVALS: u64 = 512;

/// A window is measured after this time in any case, though some workers may still work in the
/// setting of the window before.
const MAX_WARMUP: Duration = Duration::from_millis(100);

/// Windows of a test: current, candidate, current, candidate, current. The first one does not
/// count, because the first removals in a directory cost more than later ones.
const WINDOWS: usize = 5;

/// The candidate must be faster by this factor in total, and faster in each pair of windows.
const MIN_GAIN: f64 = 1.05;

/// A candidate that is slower by this factor loses before the end of the test.
const ABANDON_FACTOR: f64 = 1.4;

/// A rate is meaningful from this fraction of a window's removals on.
const MIN_SAMPLE_DIVISOR: u64 = 4;

/// A result is valid for this time, and for twice as long whenever a test confirms it.
const MIN_VALIDITY: Duration = Duration::from_millis(250);
const MAX_VALIDITY: Duration = Duration::from_secs(16);

/// A setting that is known from the file system is tested after this time. Most directories are
/// empty by then.
const PRIOR_VALIDITY: Duration = Duration::from_secs(2);

/// The length of one window: it ends when both minima are reached, or at `max_time`.
///
/// A file system that defers some of its work looks fast for a while, so a window must be longer
/// than that (xfs defers the eviction of 256 inodes for each processor).
pub struct Window {
    pub min_time: Duration,
    pub min_removals: u64,
    pub max_time: Duration,
}

/// Exponential backoff between tests of the same setting.
pub struct Backoff {
    started_at: Instant,
    until_ms: AtomicU64,
    length_ms: AtomicU64,
}

impl Backoff {
    /// Creates a backoff that has expired.
    pub fn new() -> Self {
        Self {
            started_at: Instant::now(),
            until_ms: AtomicU64::new(0),
            length_ms: AtomicU64::new(MIN_VALIDITY.as_millis() as u64),
        }
    }

    /// Starts the backoff of a setting that is known without a test.
    pub fn start_prior(&self) {
        self.start(PRIOR_VALIDITY.as_millis() as u64);
    }

    /// Returns whether the setting may be tested.
    pub fn is_expired(&self) -> bool {
        self.now_ms() >= self.until_ms.load(Relaxed)
    }

    /// Starts anew after a test: short if it changed the setting, else twice as long as before.
    pub fn restart(&self, has_changed: bool) {
        let (min_ms, max_ms) = (MIN_VALIDITY.as_millis(), MAX_VALIDITY.as_millis());
        self.start(if has_changed {
            min_ms as u64
        } else {
            (2 * self.length_ms.load(Relaxed)).min(max_ms as u64)
        });
    }

    /// Delays the next test after one that was aborted: its cause probably persists.
    pub fn postpone(&self) {
        let length_ms = self.length_ms.load(Relaxed);
        let delay_ms = length_ms.max(PRIOR_VALIDITY.as_millis() as u64);
        self.until_ms.store(self.now_ms() + delay_ms, Relaxed);
    }

    fn start(&self, length_ms: u64) {
        self.length_ms.store(length_ms, Relaxed);
        self.until_ms.store(self.now_ms() + length_ms, Relaxed);
    }

    fn now_ms(&self) -> u64 {
        self.started_at.elapsed().as_millis() as u64
    }
}

/// A comparison of the current setting with a candidate, by removals per second.
pub struct AbTest {
    window: &'static Window,
    /// Time and removals so far at the start of the current window.
    window_start: (Instant, u64),
    /// The same at the end of its warm-up.
    measured_from: Option<(Instant, u64)>,
    /// Rates of the finished windows: current, candidate, current, …
    rates: Vec<Rate>,
}

impl AbTest {
    pub fn start(window: &'static Window, now: Instant, removed: u64) -> Self {
        Self {
            window,
            window_start: (now, removed),
            measured_from: None,
            rates: Vec::with_capacity(WINDOWS),
        }
    }

    /// Returns whether the current window belongs to the candidate.
    pub fn is_candidate_active(&self) -> bool {
        self.rates.len() % 2 == 1
    }

    /// Returns whether the warm-up of the current window is over.
    pub fn is_measuring(&self) -> bool {
        self.measured_from.is_some()
    }

    /// Records the removals so far, and whether all workers use the setting of this window.
    ///
    /// At the end of the test, returns whether the candidate is faster.
    pub fn update(&mut self, now: Instant, removed: u64, is_in_effect: bool) -> Option<bool> {
        let (start, removed_before) = self.measured_from.unwrap_or(self.window_start);
        let rate = Rate::new(now - start, removed - removed_before);
        if self.measured_from.is_none() {
            let is_warm = is_in_effect && rate.covers(WARMUP, WARMUP_REMOVALS);
            if is_warm || rate.covers(MAX_WARMUP, 0) {
                self.measured_from = Some((now, removed));
            }
            return None;
        }
        let window = self.window;
        if self.is_clearly_slower(rate) {
            return Some(false);
        }
        if rate.covers(window.min_time, window.min_removals) || rate.covers(window.max_time, 0) {
            if rate.removals < window.min_removals / MIN_SAMPLE_DIVISOR {
                return Some(false); // too few removals: noise would decide
            }
            self.rates.push(rate);
            self.window_start = (now, removed);
            self.measured_from = None;
        }
        (self.rates.len() == WINDOWS).then(|| self.has_candidate_won())
    }

    /// Returns whether the candidate is too slow to finish the test.
    fn is_clearly_slower(&self, rate: Rate) -> bool {
        let current = self.rates.iter().step_by(2);
        let slowest = current.map(Rate::per_s).fold(f64::INFINITY, f64::min);
        let min_removals = self.window.min_removals / MIN_SAMPLE_DIVISOR;
        self.is_candidate_active()
            && rate.covers(self.window.min_time, min_removals)
            && ABANDON_FACTOR * rate.per_s() < slowest
    }

    fn has_candidate_won(&self) -> bool {
        let counted = &self.rates[1..];
        let candidates = counted.iter().step_by(2);
        let currents = counted.iter().skip(1).step_by(2);
        let (candidate, current): (Rate, Rate) = (candidates.clone().sum(), currents.clone().sum());
        candidate.per_s() > MIN_GAIN * current.per_s()
            && candidates
                .zip(currents)
                .all(|(candidate, current)| candidate.per_s() > current.per_s())
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

    /// Returns whether at least this time and this many removals were measured.
    fn covers(&self, min_time: Duration, min_removals: u64) -> bool {
        self.time >= min_time && self.removals >= min_removals
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

    const WINDOW: Window = Window {
        min_time: Duration::from_millis(6),
        min_removals: 2_048,
        max_time: Duration::from_millis(100),
    };

    /// Simulates a test. `removals(ms, is_candidate)` returns the removals of one millisecond.
    /// Returns the result, and the length of the test in milliseconds.
    fn simulate(mut removals: impl FnMut(u64, bool) -> u64) -> (bool, u64) {
        let start = Instant::now();
        let mut test = AbTest::start(&WINDOW, start, 0);
        let mut removed = 0;
        for ms in 1..10_000 {
            removed += removals(ms, test.is_candidate_active());
            let now = start + Duration::from_millis(ms);
            if let Some(is_faster) = test.update(now, removed, true) {
                return (is_faster, ms);
            }
        }
        panic!("the test does not end");
    }

    #[test]
    fn candidate_wins_only_by_more_than_five_percent() {
        for (candidate, is_faster) in [
            (160, true),
            (106, true),
            (104, false),
            (96, false),
            (50, false),
        ] {
            let (result, _) =
                simulate(|_, is_candidate| if is_candidate { candidate } else { 100 });
            assert_eq!(result, is_faster, "{candidate}");
        }
    }

    #[test]
    fn slow_first_window_does_not_count() {
        // the first window is slow with any setting
        let slow_ms = (WINDOW.max_time + MAX_WARMUP).as_millis() as u64;
        let (result, _) = simulate(|ms, is_candidate| match is_candidate {
            _ if ms <= slow_ms => 6,
            true => 60,
            false => 100,
        });
        assert!(!result);
    }

    #[test]
    fn candidate_faster_in_one_window_only_loses() {
        let mut windows = 0;
        let mut was_candidate = false;
        let (result, _) = simulate(|_, is_candidate| {
            windows += u64::from(is_candidate && !was_candidate);
            was_candidate = is_candidate;
            match (is_candidate, windows) {
                (true, 1) => 300,
                (true, _) => 90,
                (false, _) => 100,
            }
        });
        assert!(!result);
    }

    #[test]
    fn too_few_removals_decide_nothing() {
        // three per second with the current setting, six with the candidate
        let (result, length_ms) = simulate(|ms, is_candidate| match is_candidate {
            true => u64::from(ms % 160 == 0),
            false => u64::from(ms % 330 == 0),
        });
        assert!(!result);
        // the candidate has no window
        assert!(length_ms < 2 * (WINDOW.max_time + MAX_WARMUP).as_millis() as u64);
        // a moment without removals does not decide against the candidate
        let (result, length_ms) = simulate(|ms, is_candidate| match is_candidate {
            true if ms % 50 < 20 => 0,
            true => 20,
            false => 10,
        });
        assert!(result && length_ms > 100);
    }

    #[test]
    fn deferred_work_does_not_make_candidate_win() {
        // the first 512 removals of a candidate's window are fast because their work is deferred
        let mut deferred = 0;
        let (result, _) = simulate(|_, is_candidate| match is_candidate {
            true if deferred < 512 => {
                deferred += 128;
                128
            }
            true => 32,
            false => {
                deferred = 0;
                64
            }
        });
        assert!(!result);
    }

    #[test]
    fn clearly_slower_candidate_is_abandoned_early() {
        let length_ms =
            |candidate| simulate(|_, is_candidate| if is_candidate { candidate } else { 100 }).1;
        assert!(length_ms(90) > 100);
        assert!(length_ms(60) < 50);
    }

    #[test]
    fn backoff_doubles_while_confirmed_and_is_short_after_change() {
        let backoff = Backoff::new();
        assert!(backoff.is_expired());
        for expected_ms in [250, 500, 1_000] {
            backoff.restart(expected_ms == 250);
            assert!(!backoff.is_expired());
            assert_eq!(backoff.length_ms.load(Relaxed), expected_ms);
        }
        for _ in 0..8 {
            backoff.restart(false);
        }
        assert_eq!(backoff.length_ms.load(Relaxed), 16_000);
        backoff.restart(true);
        assert_eq!(backoff.length_ms.load(Relaxed), 250);
        backoff.start_prior();
        assert_eq!(backoff.length_ms.load(Relaxed), 2_000);
    }

    #[test]
    fn postponed_backoff_keeps_its_length() {
        let backoff = Backoff::new();
        backoff.postpone();
        assert!(!backoff.is_expired());
        assert_eq!(backoff.length_ms.load(Relaxed), 250);
    }
}
