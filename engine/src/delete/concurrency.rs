//! The number of active workers: the requested one, or one that suits the file system.
//!
//! Where several workers are known to be faster, lock contention reduces them to one for a while.

use std::time::{Duration, Instant};

/// Lock contention reduces the workers to one for this time. Then all of them try again.
const REDUCTION: Duration = Duration::from_secs(2);

/// Poll interval at the start and after each reduction, because most directories are empty within
/// a second; and the interval after `INITIAL_POLLS`.
const INITIAL_INTERVAL: Duration = Duration::from_millis(2);
const INITIAL_POLLS: u32 = 100;
const IDLE_INTERVAL: Duration = Duration::from_millis(50);

/// Chooses the number of active workers.
pub struct Concurrency {
    workers: usize,
    requested: Option<usize>,
    scaling: Scaling,
    detector: ContentionDetector,
    reduced_until: Option<Instant>,
    /// Polls since the start or the last reduction.
    polls: u32,
}

/// The measured effect of several workers in different directories of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    Faster,
    Slower,
    /// Several workers may be faster although they sleep, for example while a server answers.
    Unknown,
}

/// One observation of all workers.
#[derive(Clone, Copy)]
pub struct Observation {
    pub now: Instant,
    /// Entries removed so far.
    pub removed: u64,
    pub sched_counts: SchedCounts,
    /// A pause or the rate limit determines the speed.
    pub is_limited: bool,
}

impl Concurrency {
    /// `requested` is a fixed number of workers; `None` to choose it.
    pub fn new(workers: usize, requested: Option<usize>, scaling: Scaling) -> Self {
        Self {
            workers,
            requested,
            scaling,
            detector: ContentionDetector::default(),
            reduced_until: None,
            polls: 0,
        }
    }

    /// Fixes the number of workers from now on; `None` to choose it.
    pub fn request(&mut self, requested: Option<usize>) {
        self.requested = requested;
    }

    /// Removes a worker whose thread could not be started.
    pub fn remove_worker(&mut self) {
        self.workers = (self.workers - 1).max(1);
    }

    /// Returns the limit of active workers.
    pub fn max_active(&self) -> usize {
        let is_reduced = self.scaling == Scaling::Slower || self.reduced_until.is_some();
        let chosen = if is_reduced { 1 } else { self.workers };
        self.requested.unwrap_or(chosen).clamp(1, self.workers)
    }

    /// Returns the time until the next poll.
    pub fn poll_interval(&self) -> Duration {
        if !self.may_reduce() {
            Duration::MAX
        } else if self.reduced_until.is_none() && self.polls < INITIAL_POLLS {
            INITIAL_INTERVAL
        } else {
            IDLE_INTERVAL
        }
    }

    /// Reduces the workers to one if they wait for each other, or ends a reduction.
    pub fn poll(&mut self, observation: Observation) {
        self.polls = self.polls.saturating_add(1);
        if self
            .reduced_until
            .is_some_and(|until| observation.now >= until)
        {
            self.reduced_until = None;
            self.polls = 0;
        }
        let is_watched =
            self.may_reduce() && self.reduced_until.is_none() && !observation.is_limited;
        let Observation {
            removed,
            sched_counts,
            ..
        } = observation;
        if self
            .detector
            .is_lock_contention(removed, sched_counts, !is_watched)
        {
            self.reduced_until = Some(observation.now + REDUCTION);
        }
    }

    fn may_reduce(&self) -> bool {
        self.requested.is_none() && self.scaling == Scaling::Faster && self.workers > 1
    }
}

/// Contention is more than one voluntary context switch per `REMOVALS_PER_SWITCH` removals in
/// `MIN_CONSECUTIVE` successive samples of at least `MIN_REMOVALS`.
///
/// Measured on xfs, Linux 6.18, two workers: one switch per 1 to 10 removals in nearly every sample
/// where they take up to twice the time of one worker; one per 50 and more, with rare exceptions,
/// where they are faster.
const MIN_REMOVALS: u64 = 128;
const REMOVALS_PER_SWITCH: u64 = 16;
const MIN_CONSECUTIVE: u32 = 4;

/// Counts of the whole process so far (getrusage(2)).
#[derive(Clone, Copy, Default)]
pub struct SchedCounts {
    pub voluntary_switches: u64,
    /// Blocks of 512 bytes read from disks.
    pub blocks_read: u64,
}

impl SchedCounts {
    pub fn read() -> Self {
        let (voluntary_switches, blocks_read) = crate::sys::sched_counts();
        Self {
            voluntary_switches,
            blocks_read,
        }
    }
}

/// Detects lock contention: the threads sleep often, and not for disk reads. Compares each sample
/// with the one before.
#[derive(Default)]
struct ContentionDetector {
    removed: u64,
    counts: SchedCounts,
    consecutive: u32,
}

impl ContentionDetector {
    /// Takes a sample; returns whether the workers wait for each other's locks.
    ///
    /// `removed` is the total of all workers. `has_other_cause`: the threads may sleep for another
    /// reason, so this sample counts as none.
    fn is_lock_contention(
        &mut self,
        removed: u64,
        counts: SchedCounts,
        has_other_cause: bool,
    ) -> bool {
        let removals = removed - self.removed;
        if removals < MIN_REMOVALS && !has_other_cause {
            return false;
        }
        let before = self.counts;
        let switches = counts
            .voluntary_switches
            .saturating_sub(before.voluntary_switches);
        let blocks_read = counts.blocks_read.saturating_sub(before.blocks_read);
        let is_contended = switches * REMOVALS_PER_SWITCH > removals && blocks_read < switches;
        let consecutive = match is_contended && !has_other_cause {
            true => self.consecutive + 1,
            false => 0,
        };
        *self = Self {
            removed,
            counts,
            consecutive,
        };
        consecutive >= MIN_CONSECUTIVE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Workers on a simulated clock.
    struct Simulation {
        concurrency: Concurrency,
        observation: Observation,
    }

    impl Simulation {
        fn new(workers: usize, requested: Option<usize>, scaling: Scaling) -> Self {
            Self {
                concurrency: Concurrency::new(workers, requested, scaling),
                observation: Observation {
                    now: Instant::now(),
                    removed: 0,
                    sched_counts: SchedCounts::default(),
                    is_limited: false,
                },
            }
        }

        /// Polls as often as contention needs to be detected; returns the number of workers then.
        fn run(&mut self, is_contended: bool) -> usize {
            for _ in 0..MIN_CONSECUTIVE {
                self.observation.now += INITIAL_INTERVAL;
                self.observation.removed += 1_000;
                self.observation.sched_counts.voluntary_switches +=
                    if is_contended { 500 } else { 1 };
                self.concurrency.poll(self.observation);
            }
            self.concurrency.max_active()
        }
    }

    #[test]
    fn file_system_decides_number_of_workers() {
        for (scaling, number) in [
            (Scaling::Faster, 4),
            (Scaling::Unknown, 4),
            (Scaling::Slower, 1),
        ] {
            let mut simulation = Simulation::new(4, None, scaling);
            assert_eq!(simulation.concurrency.max_active(), number);
            assert_eq!(simulation.run(false), number);
        }
    }

    #[test]
    fn contention_reduces_workers_to_one_for_a_while() {
        let mut simulation = Simulation::new(4, None, Scaling::Faster);
        assert_eq!(simulation.run(false), 4);
        assert_eq!(simulation.run(true), 1);
        assert_eq!(simulation.run(true), 1);
        simulation.observation.now += REDUCTION;
        assert_eq!(simulation.run(false), 4);
        assert_eq!(simulation.run(true), 1);
    }

    #[test]
    fn contention_counts_only_where_workers_are_known_to_be_faster_and_free() {
        for (requested, scaling, number) in [
            (Some(3), Scaling::Faster, 3),
            (None, Scaling::Unknown, 4),
            (None, Scaling::Slower, 1),
        ] {
            let mut simulation = Simulation::new(4, requested, scaling);
            assert_eq!(simulation.run(true), number);
            assert_eq!(simulation.concurrency.poll_interval(), Duration::MAX);
        }
        let mut simulation = Simulation::new(4, None, Scaling::Faster);
        simulation.observation.is_limited = true;
        assert_eq!(simulation.run(true), 4);
    }

    #[test]
    fn requested_number_is_kept_within_workers() {
        for (requested, number) in [(3, 3), (1_000, 4), (1, 1)] {
            let mut simulation = Simulation::new(4, Some(requested), Scaling::Slower);
            assert_eq!(simulation.run(false), number);
            simulation.concurrency.request(None);
            assert_eq!(simulation.concurrency.max_active(), 1);
        }
    }

    #[test]
    fn first_polls_have_short_intervals() {
        let mut simulation = Simulation::new(2, None, Scaling::Faster);
        assert_eq!(simulation.concurrency.poll_interval(), INITIAL_INTERVAL);
        for _ in 0..INITIAL_POLLS {
            simulation.concurrency.poll(simulation.observation);
        }
        assert_eq!(simulation.concurrency.poll_interval(), IDLE_INTERVAL);
        simulation.run(true);
        assert_eq!(simulation.concurrency.poll_interval(), IDLE_INTERVAL);
        simulation.observation.now += REDUCTION;
        simulation.run(false);
        assert_eq!(simulation.concurrency.poll_interval(), INITIAL_INTERVAL);
        let alone = Concurrency::new(1, None, Scaling::Faster);
        assert_eq!(alone.poll_interval(), Duration::MAX);
    }

    #[test]
    fn worker_that_failed_to_start_is_not_counted() {
        let mut concurrency = Concurrency::new(4, Some(4), Scaling::Unknown);
        concurrency.remove_worker();
        assert_eq!(concurrency.max_active(), 3);
        concurrency.request(None);
        assert_eq!(concurrency.max_active(), 3);
        for _ in 0..4 {
            concurrency.remove_worker();
        }
        assert_eq!(concurrency.max_active(), 1);
    }

    /// Feeds samples of (removals, switches, blocks read, has other cause); returns the last answer.
    fn detects(samples: &[(u64, u64, u64, bool)]) -> bool {
        let mut detector = ContentionDetector::default();
        let (mut removed, mut counts) = (0, SchedCounts::default());
        let mut is_contended = false;
        for (removals, switches, blocks_read, has_other_cause) in samples {
            removed += removals;
            counts.voluntary_switches += switches;
            counts.blocks_read += blocks_read;
            is_contended = detector.is_lock_contention(removed, counts, *has_other_cause);
        }
        is_contended
    }

    #[test]
    fn frequent_switches_without_reads_are_contention() {
        let detects_repeated = |removals, switches, blocks_read, has_other_cause| {
            detects(&[(removals, switches, blocks_read, has_other_cause); MIN_CONSECUTIVE as usize])
        };
        assert!(detects_repeated(1_600, 101, 0, false));
        assert!(!detects_repeated(1_600, 100, 0, false));
        assert!(!detects_repeated(MIN_REMOVALS / 8, MIN_REMOVALS, 0, false));
        // switches for disk reads, or with another cause, do not count
        assert!(detects_repeated(1_600, 101, 100, false));
        assert!(!detects_repeated(1_600, 101, 101, false));
        assert!(!detects_repeated(1_600, 1_600, 0, true));
    }

    #[test]
    fn single_contended_samples_are_ignored() {
        let (contended, free) = ((1_600, 800, 0, false), (1_600, 1, 0, false));
        assert!(!detects(&[contended; 3]));
        assert!(!detects(&[
            contended, contended, contended, free, contended
        ]));
        assert!(detects(&[free, contended, contended, contended, contended]));
        // a sample with too few removals is merged with the next one
        let (small, rest) = ((100, 50, 0, false), (MIN_REMOVALS, 0, 0, false));
        assert!(detects(&[contended, contended, contended, small, rest]));
    }

    #[test]
    fn switches_with_another_cause_do_not_count_in_the_next_sample() {
        let mut detector = ContentionDetector::default();
        let counts = SchedCounts {
            voluntary_switches: 100_000,
            blocks_read: 0,
        };
        assert!(!detector.is_lock_contention(10, counts, true));
        for removed in [10_000, 20_000, 30_000, 40_000] {
            assert!(!detector.is_lock_contention(removed, counts, false));
        }
    }

    #[test]
    fn kernel_counts_a_sleep_as_voluntary_switch() {
        let before = SchedCounts::read();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(SchedCounts::read().voluntary_switches > before.voluntary_switches);
    }
}
