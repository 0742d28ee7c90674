//! Chooses the number of active workers: fixed by `--threads`, else by measuring throughput.
//!
//! The measurement is repeated: on a file system with a lock that all directories share, each
//! further worker makes the deletion slower. Lock contention is detected before any rate is known.

use std::time::{Duration, Instant};

use super::ab_test::{AbTest, Backoff, Window};
use super::contention::{ContentionDetector, SchedCounts};

/// Longer than for one directory (`dir_splitting`), because directories differ.
const WINDOW: Window = Window {
    min_time: Duration::from_millis(25),
    min_removals: 4_096,
    max_time: Duration::from_secs(2),
};

/// Poll intervals during a trial and outside of one.
const TRIAL_INTERVAL: Duration = Duration::from_millis(2);
const IDLE_INTERVAL: Duration = Duration::from_millis(50);

/// The first polls follow each other faster, because most directories are empty within a second.
const INITIAL_INTERVAL: Duration = Duration::from_millis(2);
const INITIAL_POLLS: u32 = 100;

/// After a longer gap between polls the process was stopped, and the rate is wrong.
const MAX_POLL_GAP: Duration = Duration::from_millis(100);

/// The concurrency controller.
pub struct ThreadTuner {
    workers: usize,
    requested: Option<usize>,
    current: usize,
    /// The number in the next or the running trial.
    candidate: usize,
    trial: Option<AbTest>,
    backoff: Backoff,
    polls: u32,
    /// `current` is known from the file system and not measured yet.
    is_prior: bool,
    polled_at: Instant,
    contention: ContentionDetector,
}

/// What one poll observes.
#[derive(Clone, Copy)]
pub struct Observation {
    pub now: Instant,
    /// Entries that all workers have removed so far.
    pub removed: u64,
    pub sched_counts: SchedCounts,
    pub busy_workers: usize,
    /// Something else limits the speed or is tested.
    pub is_disturbed: bool,
}

impl ThreadTuner {
    /// `requested` is a fixed number of workers; `None` to find the fastest number.
    pub fn new(workers: usize, requested: Option<usize>) -> Self {
        Self {
            workers,
            requested: requested.map(|number| number.clamp(1, workers)),
            current: workers,
            candidate: fewer(workers),
            trial: None,
            backoff: Backoff::new(),
            polls: 0,
            is_prior: false,
            polled_at: Instant::now(),
            contention: ContentionDetector::default(),
        }
    }

    /// Sets the first number by what is known of the file system.
    pub fn set_prior(&mut self, scales: Option<bool>) {
        let Some(scales) = scales else {
            return;
        };
        if !scales {
            self.current = 1;
            self.candidate = more(1).min(self.workers);
        }
        self.is_prior = true;
        self.backoff.start_prior();
    }

    /// Fixes the number of workers from now on; `None` to find the fastest number.
    pub fn request(&mut self, requested: Option<usize>) {
        self.requested = requested.map(|number| number.clamp(1, self.workers));
        self.trial = None;
    }

    /// Removes a worker whose thread could not be started.
    pub fn remove_worker(&mut self) {
        self.workers = (self.workers - 1).max(1);
        self.requested = self.requested.map(|number| number.min(self.workers));
        self.current = self.current.min(self.workers);
        self.candidate = match fewer(self.current) {
            same if same == self.current => more(same).min(self.workers),
            fewer => fewer,
        };
        self.trial = None;
    }

    /// Returns the limit of active workers.
    pub fn max_active(&self) -> usize {
        match &self.trial {
            Some(trial) if trial.is_candidate_active() => self.candidate,
            _ => self.requested.unwrap_or(self.current),
        }
    }

    pub fn has_running_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// Returns the time until the next poll.
    pub fn poll_interval(&self) -> Duration {
        match (&self.trial, self.requested) {
            (Some(_), _) => TRIAL_INTERVAL,
            (None, None) if self.workers > 1 && self.polls < INITIAL_POLLS => INITIAL_INTERVAL,
            (None, None) if self.workers > 1 => IDLE_INTERVAL,
            (None, _) => Duration::MAX,
        }
    }

    /// Starts, updates or ends a trial.
    pub fn poll(&mut self, observation: Observation) {
        let Observation {
            now,
            removed,
            sched_counts,
            busy_workers,
            is_disturbed,
        } = observation;
        let was_stopped = now - self.polled_at > MAX_POLL_GAP;
        self.polled_at = now;
        self.polls = self.polls.saturating_add(1);
        let is_fixed = self.max_active() < 2 || self.requested.is_some() || self.trial.is_some();
        let is_contended =
            self.contention
                .is_lock_contention(removed, sched_counts, is_disturbed || is_fixed);
        if is_contended && self.is_prior {
            self.is_prior = false; // from now on only measured rates count
            self.current = 1;
            self.candidate = more(1).min(self.workers);
            self.backoff.start_prior();
        }
        // With too little work the number of workers does not determine the rate.
        let has_enough_work = busy_workers >= self.max_active();
        let Some(trial) = &mut self.trial else {
            let may_change = self.candidate != self.current && self.requested.is_none();
            let is_due = self.backoff.is_expired();
            if may_change && !is_disturbed && !was_stopped && has_enough_work && is_due {
                self.trial = Some(AbTest::start(&WINDOW, now, removed));
            }
            return;
        };
        if is_disturbed || was_stopped || (trial.is_measuring() && !has_enough_work) {
            self.trial = None;
            self.backoff.postpone();
        } else if let Some(is_candidate_faster) = trial.update(now, removed, has_enough_work) {
            self.trial = None;
            self.apply_result(is_candidate_faster);
        }
    }

    fn apply_result(&mut self, is_candidate_faster: bool) {
        self.is_prior = false;
        let was_fewer = self.candidate < self.current;
        if is_candidate_faster {
            self.current = self.candidate;
        }
        self.backoff.restart(is_candidate_faster);
        // Hill climbing: a direction that won continues, one that lost is reversed.
        let (fewer, more) = (fewer(self.current), more(self.current).min(self.workers));
        self.candidate = match was_fewer == is_candidate_faster {
            true if fewer < self.current => fewer,
            false if more > self.current => more,
            true => more,
            false => fewer,
        };
    }
}

/// Returns the next smaller candidate, less by a third: 8, 5, 3, 2, 1.
fn fewer(number: usize) -> usize {
    (2 * number / 3).max(1)
}

/// Returns the next larger candidate, more by a half.
fn more(number: usize) -> usize {
    (3 * number).div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tuner on a simulated clock. A rate is removals per millisecond, by active workers.
    struct Simulation {
        tuner: ThreadTuner,
        observation: Observation,
    }

    impl Simulation {
        fn new(workers: usize, prior: Option<bool>) -> Self {
            let mut tuner = ThreadTuner::new(workers, None);
            tuner.set_prior(prior);
            let observation = Observation {
                now: tuner.polled_at,
                removed: 0,
                sched_counts: SchedCounts::default(),
                busy_workers: 0,
                is_disturbed: false,
            };
            Self { tuner, observation }
        }

        fn with_running_trial() -> Self {
            let mut simulation = Self::new(2, None);
            simulation.run(40, |_| 200);
            assert!(simulation.tuner.has_running_trial());
            simulation
        }

        fn run(&mut self, ms: u64, rate: impl Fn(usize) -> u64) -> usize {
            for _ in 0..ms {
                self.observation.now += Duration::from_millis(1);
                self.observation.removed += rate(self.tuner.max_active());
                self.observation.busy_workers = self.tuner.max_active();
                self.tuner.poll(self.observation);
            }
            self.tuner.current
        }

        /// Runs to the end of one trial. The backoff is reset, because it uses the real clock.
        fn decide(&mut self, rate: impl Fn(usize) -> u64) -> usize {
            self.tuner.backoff = Backoff::new();
            self.run(1, &rate);
            assert!(self.tuner.has_running_trial());
            for _ in 0..10_000 {
                if !self.tuner.has_running_trial() {
                    return self.tuner.current;
                }
                self.run(1, &rate);
            }
            panic!("the trial does not end");
        }

        /// Polls a changed observation one millisecond later.
        fn poll(&mut self, change: impl FnOnce(&mut Observation)) {
            self.observation.now += Duration::from_millis(1);
            change(&mut self.observation);
            self.tuner.poll(self.observation);
        }
    }

    #[test]
    fn fastest_number_is_found_from_any_start() {
        for (workers, numbers) in [(8, vec![1, 2, 3, 5, 8]), (6, vec![1, 2, 6]), (3, vec![2])] {
            for fastest in numbers {
                let rate = |number: usize| (400 * number.min(fastest) / number.max(fastest)) as u64;
                for prior in [None, Some(true), Some(false)] {
                    let mut simulation = Simulation::new(workers, prior);
                    for _ in 0..8 {
                        simulation.decide(rate);
                    }
                    assert_eq!(simulation.tuner.current, fastest, "{workers} {prior:?}");
                }
            }
        }
    }

    #[test]
    fn contention_reduces_a_prior_to_one_worker_until_rates_decide() {
        let contend = |simulation: &mut Simulation| {
            for _ in 0..4 {
                simulation.poll(|observation| {
                    observation.removed += 1_000;
                    observation.sched_counts.voluntary_switches += 500;
                });
            }
            simulation.tuner.max_active()
        };
        let mut simulation = Simulation::new(4, Some(true));
        assert_eq!(contend(&mut simulation), 1);
        assert!(!simulation.tuner.backoff.is_expired());
        // contention no longer counts after a measurement
        assert_eq!(simulation.decide(|number| 100 * number as u64), 2);
        assert_eq!(contend(&mut simulation), 2);
        // nor with a requested number, nor without a prior: all threads may sleep for a server
        let mut simulation = Simulation::new(4, Some(true));
        simulation.tuner.request(Some(3));
        assert_eq!(contend(&mut simulation), 3);
        let mut simulation = Simulation::new(4, None);
        assert_eq!(simulation.decide(|number| 100 * number as u64), 4);
        assert_eq!(contend(&mut simulation), 4);
    }

    #[test]
    fn first_polls_have_short_intervals() {
        let mut simulation = Simulation::new(2, Some(true));
        assert_eq!(simulation.tuner.poll_interval(), INITIAL_INTERVAL);
        simulation.run(u64::from(INITIAL_POLLS), |_| 1);
        assert_eq!(simulation.tuner.poll_interval(), IDLE_INTERVAL);
        let alone = Simulation::new(1, None);
        assert_eq!(alone.tuner.poll_interval(), Duration::MAX);
    }

    #[test]
    fn slightly_faster_candidate_changes_nothing() {
        for prior in [Some(true), Some(false)] {
            let mut simulation = Simulation::new(2, prior);
            let before = simulation.tuner.current;
            assert_eq!(simulation.decide(|number| 100 + number as u64), before);
            assert_eq!(simulation.decide(|number| 103 - number as u64), before);
        }
    }

    #[test]
    fn prior_is_not_tested_at_once() {
        let mut simulation = Simulation::new(2, Some(false));
        assert_eq!(simulation.run(500, |number| 100 * number as u64), 1);
        assert!(!simulation.tuner.has_running_trial());
        assert_eq!(simulation.decide(|number| 100 * number as u64), 2);
    }

    #[test]
    fn requested_number_is_not_tested() {
        for (requested, number) in [(3, 3), (1_000, 4), (1, 1)] {
            let mut simulation = Simulation::new(4, None);
            simulation.tuner = ThreadTuner::new(4, Some(requested));
            simulation.run(100, |_| 100);
            assert!(!simulation.tuner.has_running_trial());
            assert_eq!(simulation.tuner.max_active(), number);
            assert_eq!(simulation.tuner.poll_interval(), Duration::MAX);
            // trials start when the request is withdrawn
            simulation.tuner.request(None);
            simulation.run(1, |_| 100);
            assert!(simulation.tuner.has_running_trial());
            simulation.tuner.request(Some(requested));
            assert_eq!(simulation.tuner.max_active(), number);
        }
    }

    #[test]
    fn disturbed_trial_is_aborted_and_postponed() {
        let changes: [fn(&mut Observation); 3] = [
            |observation| observation.is_disturbed = true,
            |observation| observation.now += MAX_POLL_GAP,
            |observation| observation.busy_workers = 0,
        ];
        for change in changes {
            let mut simulation = Simulation::with_running_trial();
            while !simulation
                .tuner
                .trial
                .as_ref()
                .is_some_and(AbTest::is_measuring)
            {
                simulation.run(1, |_| 200);
            }
            simulation.poll(change);
            assert!(!simulation.tuner.has_running_trial());
            assert_eq!(simulation.tuner.max_active(), 2);
            simulation.observation.is_disturbed = false;
            simulation.run(50, |_| 200);
            assert!(!simulation.tuner.has_running_trial());
        }
        // a disturbance also prevents the start of a trial
        for change in changes {
            let mut simulation = Simulation::new(2, None);
            simulation.poll(change);
            assert!(!simulation.tuner.has_running_trial());
        }
    }

    #[test]
    fn worker_that_failed_to_start_is_not_counted() {
        let mut simulation = Simulation::new(4, None);
        simulation.tuner.remove_worker();
        simulation.tuner.remove_worker();
        assert_eq!(simulation.tuner.max_active(), 2);
        assert_eq!(simulation.decide(|number| 100 / number as u64), 1);
        // the prior stays
        let mut simulation = Simulation::new(4, Some(false));
        simulation.tuner.remove_worker();
        assert_eq!(simulation.decide(|number| 100 * number as u64), 2);
        // a single worker is not compared with itself
        let mut simulation = Simulation::new(2, None);
        simulation.tuner.remove_worker();
        simulation.run(50, |_| 200);
        assert!(!simulation.tuner.has_running_trial());
        let mut tuner = ThreadTuner::new(4, Some(4));
        tuner.remove_worker();
        assert_eq!(tuner.max_active(), 3);
        tuner.request(Some(4));
        assert_eq!(tuner.max_active(), 3);
    }
}
