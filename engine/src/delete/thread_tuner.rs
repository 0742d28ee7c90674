//! How many workers are at work: so many as were asked for, or so many as are fastest here.
//!
//! Which number that is is measured, again and again: a file system that locks what all
//! directories share is slower with every worker more. Where workers wait for each other that is
//! seen before any rate is known: they sleep, and not for a disk.

use std::time::{Duration, Instant};

use super::ab_test::{Trial, Trust, Window};
use super::contention::{Waiting, Waits};

/// Longer than where one directory is tried: directories differ.
const WINDOW: Window = Window {
    time: Duration::from_millis(25),
    removals: 4_096,
    longest: Duration::from_secs(2),
};

/// How often it is to be looked while another number is tried, and else.
const TRYING: Duration = Duration::from_millis(2);
const WATCHING: Duration = Duration::from_millis(50);

/// The first looks come sooner: most directories are empty within a second.
const BEGINNING: Duration = Duration::from_millis(2);
const LOOKS_AT_THE_BEGINNING: u32 = 100;

/// Who has not looked for so long was stopped, and knows no rate.
const LONGEST_GAP: Duration = Duration::from_millis(100);

/// The number of workers at work.
pub struct Crowd {
    workers: usize,
    asked: Option<usize>,
    chosen: usize,
    /// What is tried next, or is tried now.
    other: usize,
    trial: Option<Trial>,
    trust: Trust,
    looks: u32,
    /// Whether `chosen` is what is known of the file system, and nothing was seen here yet.
    is_believed: bool,
    looked_at: Instant,
    waiting: Waiting,
}

/// What there is to see at one moment.
#[derive(Clone, Copy)]
pub struct Sight {
    pub now: Instant,
    /// Entries that all workers have removed so far.
    pub removed: u64,
    pub waits: Waits,
    /// Workers that have work.
    pub busy: usize,
    /// Something else decides how fast it goes, or is tried.
    pub is_disturbed: bool,
}

impl Crowd {
    /// `asked`: `None` for so many as are fastest.
    pub fn new(workers: usize, asked: Option<usize>) -> Self {
        Self {
            workers,
            asked: asked.map(|number| number.clamp(1, workers)),
            chosen: workers,
            other: fewer(workers),
            trial: None,
            trust: Trust::none(),
            looks: 0,
            is_believed: false,
            looked_at: Instant::now(),
            waiting: Waiting::default(),
        }
    }

    /// Takes what is known of the file system as the first choice.
    pub fn expect(&mut self, several_are_faster: Option<bool>) {
        let Some(several_are_faster) = several_are_faster else {
            return;
        };
        if !several_are_faster {
            self.chosen = 1;
            self.other = more(1).min(self.workers);
        }
        self.is_believed = true;
        self.trust.expect();
    }

    /// Takes the number that is asked for from now on, as far as there are so many.
    pub fn ask(&mut self, asked: Option<usize>) {
        self.asked = asked.map(|number| number.clamp(1, self.workers));
        self.trial = None;
    }

    /// One of them could not be started.
    pub fn lose_worker(&mut self) {
        self.workers = (self.workers - 1).max(1);
        self.asked = self.asked.map(|number| number.min(self.workers));
        self.chosen = self.chosen.min(self.workers);
        self.other = match fewer(self.chosen) {
            same if same == self.chosen => more(same).min(self.workers),
            fewer => fewer,
        };
        self.trial = None;
    }

    /// How many may be at work now.
    pub fn allowed(&self) -> usize {
        match &self.trial {
            Some(trial) if trial.is_other() => self.other,
            _ => self.asked.unwrap_or(self.chosen),
        }
    }

    pub fn is_trying(&self) -> bool {
        self.trial.is_some()
    }

    /// When it is to be looked again.
    pub fn pause(&self) -> Duration {
        match (&self.trial, self.asked) {
            (Some(_), _) => TRYING,
            (None, None) if self.workers > 1 && self.looks < LOOKS_AT_THE_BEGINNING => BEGINNING,
            (None, None) if self.workers > 1 => WATCHING,
            (None, _) => Duration::MAX,
        }
    }

    /// Looks how fast it goes, and begins, goes on with or ends a trial.
    pub fn look(&mut self, sight: Sight) {
        let has_stood = sight.now - self.looked_at > LONGEST_GAP;
        self.looked_at = sight.now;
        self.looks = self.looks.saturating_add(1);
        let is_alone = self.allowed() < 2 || self.asked.is_some() || self.trial.is_some();
        let (removed, waits) = (sight.removed, sight.waits);
        let has_other_reason = sight.is_disturbed || is_alone;
        let wait = self
            .waiting
            .is_for_each_other(removed, waits, has_other_reason);
        if wait && self.is_believed {
            self.is_believed = false; // from now on rates decide
            self.chosen = 1;
            self.other = more(1).min(self.workers);
            self.trust.expect();
        }
        // Where there is not work for all it is not their number that decides.
        let have_work = sight.busy >= self.allowed();
        let Some(trial) = &mut self.trial else {
            let is_free = self.other != self.chosen && self.asked.is_none();
            if is_free && !sight.is_disturbed && !has_stood && have_work && self.trust.is_over() {
                self.trial = Some(Trial::begin(&WINDOW, sight.now, sight.removed));
            }
            return;
        };
        if sight.is_disturbed || has_stood || (trial.is_settled() && !have_work) {
            self.trial = None;
            self.trust.postpone();
        } else if let Some(other_is_faster) = trial.go_on(sight.now, sight.removed, have_work) {
            self.trial = None;
            self.decide(other_is_faster);
        }
    }

    fn decide(&mut self, other_is_faster: bool) {
        self.is_believed = false;
        let was_fewer = self.other < self.chosen;
        if other_is_faster {
            self.chosen = self.other;
        }
        self.trust.renew(other_is_faster);
        // What has won goes on; what has lost is turned round.
        let (fewer, more) = (fewer(self.chosen), more(self.chosen).min(self.workers));
        self.other = match was_fewer == other_is_faster {
            true if fewer < self.chosen => fewer,
            false if more > self.chosen => more,
            true => more,
            false => fewer,
        };
    }
}

/// The next number to try, by a third less or a half more: 8, 5, 3, 2, 1.
fn fewer(number: usize) -> usize {
    (2 * number / 3).max(1)
}

fn more(number: usize) -> usize {
    (3 * number).div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays so many milliseconds with a rate, in removals a millisecond, for each number at work.
    struct Played {
        crowd: Crowd,
        sight: Sight,
    }

    impl Played {
        fn new(workers: usize, expected: Option<bool>) -> Self {
            let mut crowd = Crowd::new(workers, None);
            crowd.expect(expected);
            let sight = Sight {
                now: crowd.looked_at,
                removed: 0,
                waits: Waits::default(),
                busy: 0,
                is_disturbed: false,
            };
            Self { crowd, sight }
        }

        /// Has a trial under way.
        fn trying() -> Self {
            let mut played = Self::new(2, None);
            played.play(40, |_| 200);
            assert!(played.crowd.is_trying());
            played
        }

        fn play(&mut self, ms: u64, rate: impl Fn(usize) -> u64) -> usize {
            for _ in 0..ms {
                self.sight.now += Duration::from_millis(1);
                self.sight.removed += rate(self.crowd.allowed());
                self.sight.busy = self.crowd.allowed();
                self.crowd.look(self.sight);
            }
            self.crowd.chosen
        }

        /// The same until a trial has come to its end; trust passes by the clock, not as played.
        fn decide(&mut self, rate: impl Fn(usize) -> u64) -> usize {
            self.crowd.trust = Trust::none();
            self.play(1, &rate);
            assert!(self.crowd.is_trying());
            for _ in 0..10_000 {
                if !self.crowd.is_trying() {
                    return self.crowd.chosen;
                }
                self.play(1, &rate);
            }
            panic!("a trial must end");
        }

        /// Sees something else a millisecond later.
        fn see(&mut self, change: impl FnOnce(&mut Sight)) {
            self.sight.now += Duration::from_millis(1);
            change(&mut self.sight);
            self.crowd.look(self.sight);
        }
    }

    #[test]
    fn the_fastest_number_is_found_from_wherever_it_begins() {
        for (workers, numbers) in [(8, vec![1, 2, 3, 5, 8]), (6, vec![1, 2, 6]), (3, vec![2])] {
            for fastest in numbers {
                let rate = |number: usize| (400 * number.min(fastest) / number.max(fastest)) as u64;
                for expected in [None, Some(true), Some(false)] {
                    let mut played = Played::new(workers, expected);
                    for _ in 0..8 {
                        played.decide(rate);
                    }
                    assert_eq!(played.crowd.chosen, fastest, "{workers} {expected:?}");
                }
            }
        }
    }

    #[test]
    fn who_waits_for_each_other_is_too_many_and_is_compared_with_more_before_long() {
        let wait = |played: &mut Played| {
            for _ in 0..4 {
                played.see(|sight| {
                    sight.removed += 1_000;
                    sight.waits.sleeps += 500;
                });
            }
            played.crowd.allowed()
        };
        let mut played = Played::new(4, Some(true));
        assert_eq!(wait(&mut played), 1);
        assert!(!played.crowd.trust.is_over());
        // and then rates decide, however often they sleep
        assert_eq!(played.decide(|number| 100 * number as u64), 2);
        assert_eq!(wait(&mut played), 2);
        // as where a number was asked for, and where all is tried: a server may let all sleep
        let mut played = Played::new(4, Some(true));
        played.crowd.ask(Some(3));
        assert_eq!(wait(&mut played), 3);
        let mut played = Played::new(4, None);
        assert_eq!(played.decide(|number| 100 * number as u64), 4);
        assert_eq!(wait(&mut played), 4);
    }

    #[test]
    fn the_first_looks_come_sooner() {
        let mut played = Played::new(2, Some(true));
        assert_eq!(played.crowd.pause(), BEGINNING);
        played.play(u64::from(LOOKS_AT_THE_BEGINNING), |_| 1);
        assert_eq!(played.crowd.pause(), WATCHING);
        assert_eq!(Played::new(1, None).crowd.pause(), Duration::MAX);
    }

    #[test]
    fn what_is_not_clearly_faster_changes_nothing() {
        for expected in [Some(true), Some(false)] {
            let mut played = Played::new(2, expected);
            let before = played.crowd.chosen;
            assert_eq!(played.decide(|number| 100 + number as u64), before);
            assert_eq!(played.decide(|number| 103 - number as u64), before);
        }
    }

    #[test]
    fn what_is_known_is_not_tried_at_once() {
        let mut played = Played::new(2, Some(false));
        assert_eq!(played.play(500, |number| 100 * number as u64), 1);
        assert!(!played.crowd.is_trying());
        assert_eq!(played.decide(|number| 100 * number as u64), 2);
    }

    #[test]
    fn nothing_is_tried_where_a_number_was_asked_for() {
        for (asked, number) in [(3, 3), (1_000, 4), (1, 1)] {
            let mut played = Played::new(4, None);
            played.crowd = Crowd::new(4, Some(asked));
            played.play(100, |_| 100);
            assert!(!played.crowd.is_trying());
            assert_eq!(played.crowd.allowed(), number);
            assert_eq!(played.crowd.pause(), Duration::MAX);
            // until it is to find out itself
            played.crowd.ask(None);
            played.play(1, |_| 100);
            assert!(played.crowd.is_trying());
            played.crowd.ask(Some(asked));
            assert_eq!(played.crowd.allowed(), number);
        }
    }

    #[test]
    fn nothing_is_learnt_where_something_else_decides_and_it_is_not_tried_at_once_again() {
        let changes: [fn(&mut Sight); 3] = [
            |sight| sight.is_disturbed = true,
            |sight| sight.now += LONGEST_GAP,
            |sight| sight.busy = 0,
        ];
        for change in changes {
            let mut played = Played::trying();
            while !played.crowd.trial.as_ref().is_some_and(Trial::is_settled) {
                played.play(1, |_| 200);
            }
            played.see(change);
            assert!(!played.crowd.is_trying());
            assert_eq!(played.crowd.allowed(), 2);
            played.sight.is_disturbed = false;
            played.play(50, |_| 200);
            assert!(!played.crowd.is_trying());
        }
        // nor is it begun there
        for change in changes {
            let mut played = Played::new(2, None);
            played.see(change);
            assert!(!played.crowd.is_trying());
        }
    }

    #[test]
    fn who_could_not_be_started_is_not_counted_on() {
        let mut played = Played::new(4, None);
        played.crowd.lose_worker();
        played.crowd.lose_worker();
        assert_eq!(played.crowd.allowed(), 2);
        assert_eq!(played.decide(|number| 100 / number as u64), 1);
        // nor is what is known forgotten
        let mut played = Played::new(4, Some(false));
        played.crowd.lose_worker();
        assert_eq!(played.decide(|number| 100 * number as u64), 2);
        // nor is one compared with one
        let mut played = Played::new(2, None);
        played.crowd.lose_worker();
        played.play(50, |_| 200);
        assert!(!played.crowd.is_trying());
        let mut crowd = Crowd::new(4, Some(4));
        crowd.lose_worker();
        assert_eq!(crowd.allowed(), 3);
        crowd.ask(Some(4));
        assert_eq!(crowd.allowed(), 3);
    }
}
