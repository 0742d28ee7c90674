//! Pause, rate limit (a token bucket), concurrency limit and cancellation of all workers.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The bucket has at most the tokens of this time, so that no burst follows a pause.
const MAX_BURST_S: f64 = 0.25;

struct State {
    is_paused: bool,
    rate_per_s: Option<f64>,
    /// Removals that are allowed now.
    tokens: f64,
    refilled_at: Instant,
    /// Concurrency slots.
    max_active: usize,
    active: usize,
}

/// Shared by all workers.
pub struct Throttle {
    /// Whether admission depends on `state`. While it does not, admission is one relaxed load.
    needs_lock: AtomicBool,
    is_cancelled: AtomicBool,
    is_gentle: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// The job was cancelled; the worker returns.
#[derive(Debug)]
pub struct Cancelled;

impl Throttle {
    pub fn new(max_active: usize, rate_per_s: Option<u32>, is_gentle: bool) -> Self {
        let throttle = Self {
            needs_lock: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
            is_gentle: AtomicBool::new(is_gentle),
            state: Mutex::new(State {
                is_paused: false,
                rate_per_s: None,
                tokens: 0.0,
                refilled_at: Instant::now(),
                max_active,
                active: 0,
            }),
            changed: Condvar::new(),
        };
        throttle.set_rate(rate_per_s);
        throttle
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Relaxed)
    }

    pub fn cancel(&self) {
        self.is_cancelled.store(true, Relaxed);
        self.update(|_| ());
    }

    pub fn set_paused(&self, is_paused: bool) {
        self.update(|state| state.is_paused = is_paused);
    }

    /// Limits the entries removed per second; `None` removes the limit.
    pub fn set_rate(&self, rate_per_s: Option<u32>) {
        self.update(|state| {
            state.rate_per_s = rate_per_s.map(f64::from);
            state.tokens = 0.0;
            state.refilled_at = Instant::now();
        });
    }

    /// Sets the number of concurrency slots, which must not be 0.
    pub fn set_max_active(&self, max_active: usize) {
        if self.lock().max_active != max_active {
            self.update(|state| state.max_active = max_active);
        }
    }

    /// Returns whether a pause or the rate limit determines the speed. A rate limit that is
    /// reached leaves no whole token.
    pub fn is_limiting(&self) -> bool {
        let state = self.lock();
        state.is_paused || (state.rate_per_s.is_some() && state.tokens < 1.0)
    }

    pub fn set_gentle(&self, is_gentle: bool) {
        self.is_gentle.store(is_gentle, Relaxed);
    }

    pub fn is_gentle(&self) -> bool {
        self.is_gentle.load(Relaxed)
    }

    /// Returns whether every worker is admitted at once.
    #[inline]
    pub fn is_open(&self) -> bool {
        !self.needs_lock.load(Relaxed)
    }

    /// Waits for the end of a pause and, over the limit, for a slot again. A removal also takes a token
    /// of the rate limit.
    ///
    /// Returns whether it was delayed.
    #[inline]
    pub fn admit(&self, is_removal: bool) -> Result<bool, Cancelled> {
        match self.is_open() {
            true => Ok(false),
            false => self.wait(is_removal),
        }
    }

    fn wait(&self, is_removal: bool) -> Result<bool, Cancelled> {
        let mut was_delayed = false;
        let mut state = self.lock();
        loop {
            if self.is_cancelled() {
                return Err(Cancelled);
            }
            if state.is_paused {
                was_delayed = true;
                state = self.changed.wait(state).expect("no worker panics");
                continue;
            }
            if state.active > state.max_active {
                was_delayed = true;
                drop(state);
                self.release_slot();
                self.acquire_slot();
                state = self.lock();
                continue;
            }
            let Some(rate_per_s) = state.rate_per_s.filter(|_| is_removal) else {
                return Ok(was_delayed);
            };
            let now = Instant::now();
            let burst = (rate_per_s * MAX_BURST_S).max(1.0);
            let passed_s = (now - state.refilled_at).as_secs_f64();
            state.tokens = (state.tokens + rate_per_s * passed_s).min(burst);
            state.refilled_at = now;
            if state.tokens >= 1.0 {
                state.tokens -= 1.0;
                return Ok(was_delayed);
            }
            was_delayed = true;
            let missing_s = (1.0 - state.tokens) / rate_per_s;
            let pause = Duration::from_secs_f64(missing_s.min(1.0));
            let waited = self.changed.wait_timeout(state, pause);
            state = waited.expect("no worker panics").0;
        }
    }

    /// Waits for a free slot and takes it. Each worker has one, except while it is idle or only helps.
    pub fn acquire_slot(&self) {
        let is_full = |state: &mut State| state.active >= state.max_active && !self.is_cancelled();
        let waited = self.changed.wait_while(self.lock(), is_full);
        let mut state = waited.expect("no worker panics");
        state.active += 1;
        self.publish(&state);
    }

    pub fn release_slot(&self) {
        self.update(|state| state.active -= 1);
    }

    fn update(&self, apply: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        apply(&mut state);
        self.publish(&state);
        self.changed.notify_all();
    }

    fn publish(&self, state: &State) {
        let needs_lock = state.is_paused
            || state.rate_per_s.is_some()
            || state.active > state.max_active
            || self.is_cancelled();
        self.needs_lock.store(needs_lock, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no worker panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::sync::Arc;

    #[test]
    fn removal_is_admitted_without_lock_when_unlimited() {
        let throttle = Throttle::new(2, None, false);
        throttle.acquire_slot();
        assert!(throttle.admit(false).is_ok());
        assert!(!throttle.needs_lock.load(Relaxed));
    }

    #[test]
    fn active_workers_stay_below_limit_and_all_finish() {
        let throttle = Arc::new(Throttle::new(4, None, false));
        let active = Arc::new(AtomicU32::new(0));
        let max_active = Arc::new(AtomicU32::new(0));
        throttle.set_max_active(2);
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (throttle, active, max_active) = (
                    Arc::clone(&throttle),
                    Arc::clone(&active),
                    Arc::clone(&max_active),
                );
                std::thread::spawn(move || {
                    throttle.acquire_slot();
                    max_active.fetch_max(active.fetch_add(1, SeqCst) + 1, SeqCst);
                    std::thread::sleep(Duration::from_millis(20));
                    assert!(throttle.admit(false).is_ok());
                    active.fetch_sub(1, SeqCst);
                    throttle.release_slot();
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        assert!(max_active.load(SeqCst) <= 2);
        assert!(!throttle.needs_lock.load(Relaxed));
    }

    #[test]
    fn worker_over_limit_waits_for_free_slot_or_higher_limit() {
        for raises_limit in [true, false] {
            let throttle = Arc::new(Throttle::new(2, None, false));
            throttle.acquire_slot();
            let shared = Arc::clone(&throttle);
            let (sender, receiver) = std::sync::mpsc::channel();
            let second = std::thread::spawn(move || {
                shared.acquire_slot();
                sender.send("started").unwrap();
                while shared.lock().max_active == 2 {
                    std::thread::yield_now();
                }
                assert!(shared.admit(false).is_ok()); // waits
                sender.send("admitted").unwrap();
                shared.release_slot();
            });
            assert_eq!(receiver.recv().unwrap(), "started");
            throttle.set_max_active(1);
            // The worker with the slot is admitted without the lock again.
            while throttle.needs_lock.load(Relaxed) {
                std::thread::yield_now();
            }
            let timeout = Duration::from_millis(50);
            assert!(receiver.recv_timeout(timeout).is_err());
            if raises_limit {
                throttle.set_max_active(2);
            } else {
                throttle.release_slot();
            }
            assert_eq!(receiver.recv().unwrap(), "admitted");
            second.join().unwrap();
        }
    }

    #[test]
    fn cancel_ends_wait_for_slot_and_leaks_none() {
        let throttle = Arc::new(Throttle::new(2, None, false));
        throttle.set_max_active(1);
        throttle.acquire_slot();
        let shared = Arc::clone(&throttle);
        let worker = std::thread::spawn(move || {
            shared.acquire_slot();
            let is_admitted = shared.admit(false).is_ok();
            shared.release_slot();
            is_admitted
        });
        throttle.cancel();
        assert!(!worker.join().unwrap());
        throttle.release_slot();
        assert_eq!(throttle.lock().active, 0);
    }

    #[test]
    fn rate_limit_is_limiting_only_when_reached() {
        // at four per second the bucket has one token
        for (rate_per_s, is_limiting) in [(1_000_000, false), (4, true)] {
            let throttle = Throttle::new(1, Some(rate_per_s), false);
            throttle.acquire_slot();
            std::thread::sleep(Duration::from_millis(15));
            throttle.admit(true).unwrap();
            assert_eq!(throttle.is_limiting(), is_limiting);
        }
        let throttle = Throttle::new(1, None, false);
        assert!(!throttle.is_limiting());
        throttle.set_paused(true);
        assert!(throttle.is_limiting());
    }
}
