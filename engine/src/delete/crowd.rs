//! How many workers are at work: so many as were asked for, or so many as are fastest here.
//!
//! Which number that is is measured, again and again: a file system that locks what all
//! directories share is slower with every worker more.

use std::time::{Duration, Instant};

use super::trial::{Trial, Trust, Window};

/// Longer than where one directory is tried: a worker that has given its place away comes back
/// after some milliseconds, and directories differ.
const WINDOW: Window = Window {
    time: Duration::from_millis(25),
    removals: 4_096,
    longest: Duration::from_millis(500),
};

/// How often it is to be looked while another number is tried, and else.
const TRYING: Duration = Duration::from_millis(2);
const WATCHING: Duration = Duration::from_millis(50);

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
    looked_at: Instant,
}

impl Crowd {
    /// `asked`: `None` for so many as are fastest.
    pub fn new(workers: usize, asked: Option<usize>) -> Self {
        Self {
            workers,
            asked,
            chosen: workers,
            other: fewer(workers),
            trial: None,
            trust: Trust::none(),
            looked_at: Instant::now(),
        }
    }

    /// Takes what is known of the file system as the first choice.
    pub fn expect(&mut self, several_are_faster: Option<bool>) {
        let Some(several_are_faster) = several_are_faster else {
            return;
        };
        if !several_are_faster {
            self.chosen = 1;
            self.other = self.workers.min(2);
        }
        self.trust.expect();
    }

    /// Takes the number that is asked for from now on.
    pub fn ask(&mut self, asked: Option<usize>) {
        self.asked = asked.map(|number| number.clamp(1, self.workers));
        self.trial = None;
    }

    /// How many are to be at work, but for what is tried for moments.
    pub fn number(&self) -> usize {
        self.asked.unwrap_or(self.chosen)
    }

    /// How many may be at work now.
    pub fn allowed(&self) -> usize {
        match &self.trial {
            Some(trial) if trial.is_other() => self.other,
            _ => self.number(),
        }
    }

    /// When it is to be looked again.
    pub fn pause(&self) -> Duration {
        match (&self.trial, self.asked) {
            (Some(_), _) => TRYING,
            (None, None) if self.workers > 1 => WATCHING,
            (None, _) => Duration::MAX,
        }
    }

    /// Takes note of the time, of all removals so far, of how many have work, and of whether
    /// something else decides how fast it goes.
    pub fn look(&mut self, now: Instant, removed: u64, busy: usize, is_held_back: bool) {
        let has_stood = now - self.looked_at > LONGEST_GAP;
        self.looked_at = now;
        if self.workers < 2 || self.asked.is_some() || is_held_back || has_stood {
            self.trial = None;
            return;
        }
        let Some(trial) = &mut self.trial else {
            // Where there is not work for all it is not their number that decides.
            if self.trust.is_over() && busy >= self.chosen {
                self.trial = Some(Trial::begin(&WINDOW, now, removed));
            }
            return;
        };
        if let Some(other_is_faster) = trial.go_on(now, removed, true) {
            self.trial = None;
            self.decide(other_is_faster);
        }
    }

    fn decide(&mut self, other_is_faster: bool) {
        let was_fewer = self.other < self.chosen;
        if other_is_faster {
            self.chosen = self.other;
        }
        self.trust.renew(other_is_faster);
        // What was won by goes on; what lost is turned round.
        let (fewer, more) = (fewer(self.chosen), (2 * self.chosen).min(self.workers));
        self.other = match was_fewer == other_is_faster {
            true if fewer < self.chosen => fewer,
            false if more > self.chosen => more,
            true => more,
            false => fewer,
        };
    }
}

fn fewer(number: usize) -> usize {
    (number / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays so many milliseconds with a rate, in removals a millisecond, for each number at work.
    struct Played {
        crowd: Crowd,
        now: Instant,
        removed: u64,
    }

    impl Played {
        fn new(workers: usize, expected: Option<bool>) -> Self {
            let mut crowd = Crowd::new(workers, None);
            crowd.expect(expected);
            let now = Instant::now();
            Self {
                crowd,
                now,
                removed: 0,
            }
        }

        fn play(&mut self, ms: u64, rate: impl Fn(usize) -> u64) -> usize {
            for _ in 0..ms {
                self.now += Duration::from_millis(1);
                self.removed += rate(self.crowd.allowed());
                let busy = self.crowd.allowed();
                self.crowd.look(self.now, self.removed, busy, false);
            }
            self.crowd.number()
        }

        /// The same until a trial has come to its end; trust passes by the clock, not as played.
        fn decide(&mut self, rate: impl Fn(usize) -> u64) -> usize {
            self.crowd.trust = Trust::none();
            self.play(1, &rate);
            assert!(self.crowd.trial.is_some());
            for _ in 0..10_000 {
                if self.crowd.trial.is_none() {
                    return self.crowd.number();
                }
                self.play(1, &rate);
            }
            panic!("a trial must end");
        }
    }

    #[test]
    fn the_fastest_number_is_found_from_wherever_it_begins() {
        for fastest in [1, 2, 4, 8_usize] {
            let rate = |number: usize| 400 / (1 + number.max(fastest) / number.min(fastest)) as u64;
            for expected in [None, Some(true), Some(false)] {
                let mut played = Played::new(8, expected);
                for _ in 0..8 {
                    played.decide(rate);
                }
                assert_eq!(played.crowd.number(), fastest, "{expected:?}");
            }
        }
    }

    #[test]
    fn what_is_not_clearly_faster_changes_nothing() {
        for expected in [Some(true), Some(false)] {
            let mut played = Played::new(2, expected);
            let before = played.crowd.number();
            assert_eq!(played.decide(|number| 100 + number as u64), before);
            assert_eq!(played.decide(|number| 103 - number as u64), before);
        }
    }

    #[test]
    fn what_is_known_is_not_tried_at_once() {
        let mut played = Played::new(2, Some(false));
        assert_eq!(played.play(500, |number| 100 * number as u64), 1);
        assert!(played.crowd.trial.is_none());
        assert_eq!(played.decide(|number| 100 * number as u64), 2);
    }

    #[test]
    fn nothing_is_tried_where_a_number_was_asked_for() {
        let mut crowd = Crowd::new(4, Some(3));
        assert_eq!((crowd.number(), crowd.pause()), (3, Duration::MAX));
        crowd.look(crowd.looked_at + WATCHING, 1_000, 4, false);
        assert!(crowd.trial.is_none());
        // until it is to find out itself
        crowd.ask(None);
        crowd.look(crowd.looked_at + WATCHING, 2_000, 4, false);
        assert!(crowd.trial.is_some());
        crowd.ask(Some(99));
        assert_eq!((crowd.allowed(), crowd.pause()), (4, Duration::MAX));
    }

    #[test]
    fn no_rate_is_learnt_where_something_else_decides_it() {
        let begun = || {
            let mut played = Played::new(2, None);
            played.play(1, |_| 100);
            assert!(played.crowd.trial.is_some());
            played
        };
        let mut played = begun();
        let then = played.now + Duration::from_millis(1);
        played.crowd.look(then, 200, 2, true);
        assert!(played.crowd.trial.is_none());
        // nor after a time in which it stood
        let mut played = begun();
        let then = played.now + LONGEST_GAP + Duration::from_millis(1);
        played.crowd.look(then, 200, 2, false);
        assert!(played.crowd.trial.is_none());
        // nor where there is not work for all
        let mut crowd = Crowd::new(2, None);
        crowd.look(crowd.looked_at + WATCHING, 100, 1, false);
        assert!(crowd.trial.is_none());
    }
}
