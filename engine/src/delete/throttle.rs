//! What holds workers back: a pause, a rate, fewer threads; and what ends them: a cancel.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Time not used up is not saved for longer: after a pause there is no burst.
const LONGEST_SAVING_S: f64 = 0.25;

struct State {
    is_paused: bool,
    per_s: Option<f64>,
    /// Removals that may be made now; negative where they were made in advance.
    tokens: f64,
    filled_at: Instant,
    /// Workers that may be at work at the same time.
    most: usize,
    at_work: usize,
}

/// Shared by all workers.
pub struct Brake {
    workers: usize,
    /// Whether anything of the following needs a look; one relaxed load where nothing does.
    needs_look: AtomicBool,
    is_cancelled: AtomicBool,
    is_gentle: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// Whether one may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    AtOnce,
    AfterWaiting,
    Never,
}

/// A worker's place among those at work, kept until it has no work or is one too many.
#[derive(Default)]
pub struct Seat {
    is_mine: bool,
}

impl Brake {
    pub fn new(workers: usize, per_s: Option<u32>, is_gentle: bool) -> Self {
        let brake = Self {
            workers,
            needs_look: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
            is_gentle: AtomicBool::new(is_gentle),
            state: Mutex::new(State {
                is_paused: false,
                per_s: None,
                tokens: 0.0,
                filled_at: Instant::now(),
                most: workers,
                at_work: 0,
            }),
            changed: Condvar::new(),
        };
        brake.limit_rate(per_s);
        brake
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Relaxed)
    }

    pub fn cancel(&self) {
        self.is_cancelled.store(true, Relaxed);
        self.change(|_| ());
    }

    pub fn pause(&self, is_paused: bool) {
        self.change(|state| state.is_paused = is_paused);
    }

    /// Entries removed in a second at most; `None` for no limit.
    pub fn limit_rate(&self, per_s: Option<u32>) {
        self.change(|state| {
            state.per_s = per_s.map(f64::from);
            state.tokens = 0.0;
            state.filled_at = Instant::now();
        });
    }

    /// Workers that may be at work at the same time, at least one.
    pub fn limit_workers(&self, most: usize) {
        let most = most.clamp(1, self.workers);
        self.change(|state| state.most = most);
    }

    /// Whether a pause or a rate decides how fast it goes: a rate that is reached leaves nothing.
    pub fn holds_back(&self) -> bool {
        let state = self.lock();
        state.is_paused || (state.per_s.is_some() && state.tokens < 1.0)
    }

    pub fn be_gentle(&self, is_gentle: bool) {
        self.is_gentle.store(is_gentle, Relaxed);
    }

    pub fn is_gentle(&self) -> bool {
        self.is_gentle.load(Relaxed)
    }

    /// Whether nobody has to wait or to end.
    #[inline]
    pub fn is_off(&self) -> bool {
        !self.needs_look.load(Relaxed)
    }

    /// Waits as long as there is a reason to.
    ///
    /// Returns `false` where everything is to end.
    #[inline]
    pub fn permits(&self, seat: &mut Seat) -> bool {
        self.is_off() || self.wait(seat, false) != Permit::Never
    }

    /// The same before a removal, which a limited rate counts.
    #[inline]
    pub fn permits_removal(&self, seat: &mut Seat) -> Permit {
        if self.is_off() {
            Permit::AtOnce
        } else {
            self.wait(seat, true)
        }
    }

    fn wait(&self, seat: &mut Seat, is_removal: bool) -> Permit {
        let mut permit = Permit::AtOnce;
        let mut state = self.lock();
        loop {
            if self.is_cancelled() {
                return Permit::Never;
            }
            if state.is_paused {
                permit = Permit::AfterWaiting;
                state = self.changed.wait(state).expect("no worker panics");
                continue;
            }
            if seat.is_mine && state.at_work > state.most {
                permit = Permit::AfterWaiting;
                self.leave_locked(&mut state, seat);
                state = self.join_locked(state, seat);
                continue;
            }
            let Some(per_s) = state.per_s.filter(|_| is_removal) else {
                return permit;
            };
            let now = Instant::now();
            let saved = (per_s * LONGEST_SAVING_S).max(1.0);
            let passed_s = (now - state.filled_at).as_secs_f64();
            state.tokens = (state.tokens + per_s * passed_s).min(saved);
            state.filled_at = now;
            if state.tokens >= 1.0 {
                state.tokens -= 1.0;
                return permit;
            }
            permit = Permit::AfterWaiting;
            let missing_s = (1.0 - state.tokens) / per_s;
            let pause = Duration::from_secs_f64(missing_s.min(1.0));
            state = self
                .changed
                .wait_timeout(state, pause)
                .expect("no worker panics")
                .0;
        }
    }

    /// Takes a place among those at work, when there is one.
    pub fn join(&self, seat: &mut Seat) {
        let state = self.lock();
        drop(self.join_locked(state, seat));
    }

    /// Gives the place back, before waiting for work.
    pub fn leave(&self, seat: &mut Seat) {
        self.leave_locked(&mut self.lock(), seat);
    }

    fn join_locked<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        seat: &mut Seat,
    ) -> MutexGuard<'a, State> {
        while !self.is_cancelled() && state.at_work >= state.most {
            state = self.changed.wait(state).expect("no worker panics");
        }
        state.at_work += 1;
        seat.is_mine = true;
        self.note_need(&state);
        state
    }

    fn leave_locked(&self, state: &mut State, seat: &mut Seat) {
        if std::mem::take(&mut seat.is_mine) {
            state.at_work -= 1;
            self.note_need(state);
            self.changed.notify_all();
        }
    }

    fn change(&self, make: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        make(&mut state);
        self.note_need(&state);
        self.changed.notify_all();
    }

    fn note_need(&self, state: &State) {
        let needs_look = state.is_paused
            || state.per_s.is_some()
            || state.at_work > state.most
            || self.is_cancelled();
        self.needs_look.store(needs_look, Relaxed);
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
    fn without_limits_nothing_waits() {
        let brake = Brake::new(2, None, false);
        let mut seat = Seat::default();
        brake.join(&mut seat);
        assert!(brake.permits(&mut seat));
        assert!(!brake.needs_look.load(Relaxed));
    }

    #[test]
    fn cancelled_is_cancelled_even_when_paused() {
        let brake = Arc::new(Brake::new(1, None, false));
        brake.pause(true);
        let other = Arc::clone(&brake);
        let waiting = std::thread::spawn(move || {
            let mut seat = Seat::default();
            other.join(&mut seat);
            other.permits(&mut seat)
        });
        brake.cancel();
        assert!(!waiting.join().unwrap());
    }

    #[test]
    fn a_rate_is_not_exceeded() {
        let began = Instant::now();
        let brake = Brake::new(1, Some(1_000), false);
        let mut seat = Seat::default();
        brake.join(&mut seat);
        for _ in 0..200 {
            assert_ne!(brake.permits_removal(&mut seat), Permit::Never);
        }
        // 200 removals at 1,000 a second, the first of which had nothing saved
        assert!(began.elapsed() >= Duration::from_millis(199));
    }

    #[test]
    fn never_more_at_work_than_permitted_and_all_come_to_their_end() {
        let brake = Arc::new(Brake::new(4, None, false));
        let at_work = Arc::new(AtomicU32::new(0));
        let most = Arc::new(AtomicU32::new(0));
        brake.limit_workers(2);
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (brake, at_work, most) =
                    (Arc::clone(&brake), Arc::clone(&at_work), Arc::clone(&most));
                std::thread::spawn(move || {
                    let mut seat = Seat::default();
                    brake.join(&mut seat);
                    most.fetch_max(at_work.fetch_add(1, SeqCst) + 1, SeqCst);
                    std::thread::sleep(Duration::from_millis(20));
                    assert!(brake.permits(&mut seat));
                    at_work.fetch_sub(1, SeqCst);
                    brake.leave(&mut seat);
                })
            })
            .collect();
        for worker in workers {
            worker.join().unwrap();
        }
        assert!(most.load(SeqCst) <= 2);
        assert!(!brake.needs_look.load(Relaxed));
    }

    #[test]
    fn who_is_too_many_waits_until_somebody_leaves_or_more_may_work() {
        for more_may_work in [true, false] {
            let brake = Arc::new(Brake::new(2, None, false));
            let mut first = Seat::default();
            brake.join(&mut first);
            let (other, (said, heard)) = (Arc::clone(&brake), std::sync::mpsc::channel());
            let second = std::thread::spawn(move || {
                let mut seat = Seat::default();
                other.join(&mut seat);
                said.send("begun").unwrap();
                while other.lock().most == 2 {
                    std::thread::yield_now();
                }
                assert!(other.permits(&mut seat)); // waits
                said.send("gone on").unwrap();
                other.leave(&mut seat);
            });
            assert_eq!(heard.recv().unwrap(), "begun");
            brake.limit_workers(1);
            // Who has the place need not so much as look any more
            while brake.needs_look.load(Relaxed) {
                std::thread::yield_now();
            }
            let waits_for = Duration::from_millis(50);
            assert!(heard.recv_timeout(waits_for).is_err());
            if more_may_work {
                brake.limit_workers(2);
            } else {
                brake.leave(&mut first);
            }
            assert_eq!(heard.recv().unwrap(), "gone on");
            second.join().unwrap();
        }
    }

    #[test]
    fn cancelled_who_waits_for_a_place_ends_and_has_none() {
        let brake = Arc::new(Brake::new(2, None, false));
        brake.limit_workers(1);
        let mut first = Seat::default();
        brake.join(&mut first);
        let other = Arc::clone(&brake);
        let waiting = std::thread::spawn(move || {
            let mut seat = Seat::default();
            other.join(&mut seat);
            let may_go_on = other.permits(&mut seat);
            other.leave(&mut seat);
            may_go_on
        });
        brake.cancel();
        assert!(!waiting.join().unwrap());
        brake.leave(&mut first);
        assert_eq!(brake.lock().at_work, 0);
    }

    #[test]
    fn a_rate_holds_back_only_where_it_is_reached() {
        // of four a second not more than one is saved
        for (per_s, holds_back) in [(1_000_000, false), (4, true)] {
            let brake = Brake::new(1, Some(per_s), false);
            let mut seat = Seat::default();
            brake.join(&mut seat);
            std::thread::sleep(Duration::from_millis(15));
            brake.permits_removal(&mut seat);
            assert_eq!(brake.holds_back(), holds_back);
        }
        let brake = Brake::new(1, None, false);
        assert!(!brake.holds_back());
        brake.pause(true);
        assert!(brake.holds_back());
    }
}
