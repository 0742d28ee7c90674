//! The number of active workers, for deletions and surveys.
//!
//! A requested number is kept. Else the table of file systems gives the first number. Where several
//! workers are known to be faster, lock contention reduces them to one for a while. Where workers may
//! wait for a server, there are more as long as that hides the waiting (`LatencyRule`).

use std::time::{Duration, Instant};

/// Lock contention reduces the workers to one for this time. Then all of them try again.
const REDUCTION: Duration = Duration::from_secs(2);

/// Poll interval at the start and after each reduction, because most directories are empty within a
/// second. Each poll without contention doubles it, because it takes a processor from a worker.
const MIN_INTERVAL: Duration = Duration::from_millis(2);
const MAX_INTERVAL: Duration = Duration::from_millis(50);

/// Workers at most where they may wait for a server.
pub const MAX_WAITING: usize = 128;

/// Workers at most where no number is requested and they do not wait. More were not faster.
pub const MAX_COMPUTING: usize = 8;

/// The measured effect of several workers in different directories of the targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    Faster,
    Slower,
    /// It was not measured. Workers may wait, so that even more of them than processors are faster.
    Unknown,
    /// The type of the file system is not known, as of all that a server answers for.
    Waiting,
}

impl Scaling {
    /// Returns whether more workers than processors may be faster.
    pub fn may_wait(self) -> bool {
        matches!(self, Self::Unknown | Self::Waiting)
    }
}

/// Returns the effect of several workers if it is the same everywhere.
pub fn common_scaling(mut scalings: impl Iterator<Item = Scaling>) -> Scaling {
    let first = scalings.next().unwrap_or(Scaling::Unknown);
    match scalings.all(|scaling| scaling == first) {
        true => first,
        false => Scaling::Unknown,
    }
}

/// Chooses the number of active workers.
pub struct Concurrency {
    /// Workers at most.
    workers: usize,
    /// Workers at most that compute.
    computing: usize,
    requested: Option<usize>,
    scaling: Scaling,
    detector: ContentionDetector,
    reduced_until: Option<Instant>,
    latency: LatencyRule,
    interval: Duration,
}

/// One observation of all workers.
#[derive(Clone, Copy)]
pub struct Observation {
    pub now: Instant,
    /// Entries done so far.
    pub done: u64,
    /// Workers that work, and do not wait for admission.
    pub busy: usize,
    pub usage: Usage,
    /// A pause or the rate limit determines the speed.
    pub is_limited: bool,
}

impl Concurrency {
    /// `requested` is a fixed number of workers, `None` to choose it; there are never more than
    /// `available`.
    pub fn new(
        processors: usize,
        available: usize,
        requested: Option<usize>,
        scaling: Scaling,
    ) -> Self {
        let computing = processors.min(MAX_COMPUTING).min(available).max(1);
        let chosen = match scaling {
            Scaling::Unknown | Scaling::Waiting => MAX_WAITING.max(computing),
            Scaling::Faster | Scaling::Slower => computing,
        };
        Self {
            workers: requested.unwrap_or(chosen).min(available).max(1),
            computing,
            requested,
            scaling,
            detector: ContentionDetector::default(),
            reduced_until: None,
            latency: LatencyRule::new(computing, scaling == Scaling::Waiting),
            interval: MIN_INTERVAL,
        }
    }

    /// Returns the number of workers that there can be.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Fixes the number of workers from now on; `None` to choose it.
    pub fn request(&mut self, requested: Option<usize>) {
        self.requested = requested;
    }

    /// Sets the number of workers, because no more threads can be started.
    pub fn set_workers(&mut self, workers: usize) {
        self.workers = workers.max(1);
    }

    /// Returns the limit of active workers.
    pub fn max_active(&self) -> usize {
        let chosen = match self.scaling {
            Scaling::Slower => 1,
            Scaling::Faster if self.reduced_until.is_some() => 1,
            Scaling::Faster => self.computing,
            Scaling::Unknown | Scaling::Waiting => self.latency.workers,
        };
        self.requested.unwrap_or(chosen).clamp(1, self.workers)
    }

    /// Returns the time until the next poll.
    pub fn poll_interval(&self) -> Duration {
        if self.requested.is_some() || self.workers == 1 {
            return Duration::MAX;
        }
        match self.scaling {
            Scaling::Slower => Duration::MAX,
            Scaling::Faster => self.interval,
            Scaling::Unknown | Scaling::Waiting => LatencyRule::INTERVAL,
        }
    }

    /// Changes the number of workers by what they do.
    pub fn poll(&mut self, observation: Observation) {
        let now = observation.now;
        if self.reduced_until.is_some_and(|until| now >= until) {
            self.reduced_until = None;
            self.interval = MIN_INTERVAL;
        }
        let is_fixed = self.requested.is_some() || self.workers == 1 || observation.is_limited;
        match self.scaling {
            Scaling::Slower => (),
            Scaling::Faster => {
                let is_watched = !is_fixed && self.reduced_until.is_none();
                let Observation { done, usage, .. } = observation;
                let before = self.detector.consecutive;
                let consecutive = self.detector.take_sample(done, usage, !is_watched);
                if consecutive >= MIN_CONSECUTIVE {
                    self.reduced_until = Some(now + REDUCTION);
                } else if consecutive <= before {
                    self.interval = (2 * self.interval).min(MAX_INTERVAL);
                }
            }
            Scaling::Unknown | Scaling::Waiting if is_fixed => self.latency.restart(observation),
            Scaling::Unknown | Scaling::Waiting => self.latency.poll(observation, self.workers),
        }
    }
}

/// Raises the number of workers while they wait for a server that can do more, as TCP Vegas raises its
/// window. In each sample, every worker finishes a few entries. After each sample with all workers busy:
///
/// 1. Busy workers over entries per second are the time of one entry (Little's law). Its minimum is the
///    time without a queue; it ages, because other directories may be slower.
/// 2. If workers compute for half of their time, there are no more workers than processors.
/// 3. If the last raise brought less than a fifth more entries, or if an entry takes more than twice the
///    minimum (the server has a queue), the number is divided by the factor of the raise.
/// 4. Else it is multiplied by that factor: by four until the first division, then by two. Samples last
///    for whole directories then, because workers may wait for each other at the next directory.
/// 5. A division is kept for `HOLD` samples, unless the server becomes faster by half, or slower by a fifth.
struct LatencyRule {
    workers: usize,
    computing: usize,
    step: Step,
    sample: Option<Sample>,
    /// Not all workers have noticed yet that their number has changed.
    is_settling: bool,
    /// Seconds for one entry.
    minimum_s: f64,
    /// Entries per second before the last raise.
    before_per_s: Option<f64>,
    /// Samples until the number may be raised.
    held: u32,
    /// Entries per second when the number was lowered.
    lowered_per_s: f64,
}

/// The factor of a raise, and the size of a sample.
struct Step {
    factor: usize,
    entries_per_worker: usize,
}

/// The work since its first observation.
struct Sample {
    first: Observation,
    last: Instant,
    /// The sum of the times of all busy workers.
    busy_s: f64,
}

impl LatencyRule {
    /// Workers at first behind a server, which can answer as many.
    const FIRST: usize = 8;
    const INTERVAL: Duration = Duration::from_millis(5);
    const MIN_SAMPLE: Duration = Duration::from_millis(8);
    const FIRST_STEP: Step = Step {
        factor: 4,
        entries_per_worker: 6,
    };
    const STEP: Step = Step {
        factor: 2,
        entries_per_worker: 24,
    };
    const AGING_PER_SAMPLE: f64 = 1.02;
    const MAX_QUEUE: f64 = 2.0;
    const MIN_GAIN: f64 = 1.2;
    const COMPUTING: f64 = 0.5;
    /// Of the allowed workers, so that those that have just got or finished work do not matter.
    const ALL_BUSY: f64 = 0.8;
    const HOLD: u32 = 16;
    const RECOVERY: f64 = 1.5;
    const LOSS: f64 = 0.8;

    fn new(computing: usize, is_waiting: bool) -> Self {
        let first = if is_waiting { Self::FIRST } else { 1 };
        Self {
            workers: computing.max(first),
            computing,
            step: Self::FIRST_STEP,
            sample: None,
            is_settling: false,
            minimum_s: f64::MAX,
            before_per_s: None,
            held: 0,
            lowered_per_s: f64::MAX,
        }
    }

    /// Forgets the sample, because something else determines the speed.
    fn restart(&mut self, observation: Observation) {
        self.sample = Some(Sample {
            first: observation,
            last: observation.now,
            busy_s: 0.0,
        });
    }

    fn poll(&mut self, observation: Observation, available: usize) {
        self.workers = self.workers.min(available);
        let Some(sample) = &mut self.sample else {
            return self.restart(observation);
        };
        let passed = observation.now - sample.last;
        sample.busy_s += observation.busy as f64 * passed.as_secs_f64();
        sample.last = observation.now;
        let duration = observation.now - sample.first.now;
        let entries = observation.done.saturating_sub(sample.first.done);
        let min_entries = self.step.entries_per_worker * self.workers;
        let is_long = entries >= min_entries as u64 && duration >= Self::MIN_SAMPLE;
        let is_busy =
            sample.busy_s >= Self::ALL_BUSY * self.workers as f64 * duration.as_secs_f64();
        if !is_long || sample.busy_s == 0.0 {
            return;
        }
        // Those that have begun a task finish it, also if there should be fewer.
        let workers = (sample.busy_s / duration.as_secs_f64()).round() as usize;
        let workers = workers.max(self.workers);
        let computed = (observation.usage.cpu).saturating_sub(sample.first.usage.cpu);
        let computing = computed.as_secs_f64() / sample.busy_s;
        let entry_s = sample.busy_s / entries as f64;
        let per_s = entries as f64 / duration.as_secs_f64();
        self.restart(observation);
        if !is_busy || std::mem::take(&mut self.is_settling) {
            return;
        }
        self.minimum_s = (self.minimum_s * Self::AGING_PER_SAMPLE).min(entry_s);
        let has_lost = self.held > 0 && per_s < Self::LOSS * self.lowered_per_s;
        self.held = match has_lost || per_s > Self::RECOVERY * self.lowered_per_s {
            true => 0,
            false => self.held.saturating_sub(1),
        };
        let has_queue = entry_s > Self::MAX_QUEUE * self.minimum_s && workers > self.computing;
        let before_per_s = self.before_per_s.take();
        let is_useless = before_per_s.is_some_and(|before| per_s < Self::MIN_GAIN * before);
        if computing > Self::COMPUTING {
            self.lower(self.computing, per_s);
        } else if is_useless || has_queue && !has_lost {
            self.lower(workers / self.step.factor, per_s);
        } else if self.held == 0 && workers < available {
            self.workers = (self.step.factor * workers).min(available);
            self.before_per_s = Some(per_s);
            self.is_settling = true;
        }
    }

    /// Lowers the number of workers, to no less than those that could compute.
    fn lower(&mut self, workers: usize, per_s: f64) {
        self.workers = self.workers.min(workers.max(self.computing));
        self.is_settling = true;
        self.before_per_s = None;
        self.step = Self::STEP;
        self.held = Self::HOLD;
        self.lowered_per_s = per_s;
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

/// What all threads of the process have used so far (getrusage(2)).
#[derive(Clone, Copy, Default)]
pub struct Usage {
    pub voluntary_switches: u64,
    /// Blocks of 512 bytes read from disks.
    pub blocks_read: u64,
    /// The time in which they computed, in the kernel too.
    pub cpu: Duration,
}

/// Detects lock contention: the threads sleep often, and not for disk reads. Compares each sample
/// with the one before.
#[derive(Default)]
struct ContentionDetector {
    removed: u64,
    counts: Usage,
    consecutive: u32,
}

impl ContentionDetector {
    /// Takes a sample; returns in how many successive ones the workers waited for each other's locks.
    ///
    /// `removed` is the total of all workers. `has_other_cause`: the threads may sleep for another
    /// reason, so this sample counts as none.
    fn take_sample(&mut self, removed: u64, counts: Usage, has_other_cause: bool) -> u32 {
        let removals = removed - self.removed;
        if removals < MIN_REMOVALS && !has_other_cause {
            return self.consecutive;
        }
        let before = self.counts;
        let switches = counts.voluntary_switches;
        let switches = switches.saturating_sub(before.voluntary_switches);
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
        consecutive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROCESSORS: usize = 4;
    const MANY: usize = 1_000;

    /// Workers on a simulated clock.
    struct Simulation {
        concurrency: Concurrency,
        observation: Observation,
    }

    impl Simulation {
        fn new(requested: Option<usize>, scaling: Scaling) -> Self {
            Self {
                concurrency: Concurrency::new(PROCESSORS, MANY, requested, scaling),
                observation: Observation {
                    now: Instant::now(),
                    done: 0,
                    busy: 0,
                    usage: Usage::default(),
                    is_limited: false,
                },
            }
        }

        /// Polls as often as contention needs to be detected; returns the number of workers then.
        fn run(&mut self, is_contended: bool) -> usize {
            (0..MIN_CONSECUTIVE).for_each(|_| self.poll(is_contended));
            self.concurrency.max_active()
        }

        fn poll(&mut self, is_contended: bool) {
            self.observation.now += MIN_INTERVAL;
            self.observation.done += 1_000;
            self.observation.usage.voluntary_switches += if is_contended { 500 } else { 1 };
            self.concurrency.poll(self.observation);
        }

        /// Has a server answer for some seconds; returns the number of workers at the end.
        fn serve(&mut self, seconds: f64, server: &Server) -> usize {
            let step = LatencyRule::INTERVAL;
            let mut done = 0.0;
            for _ in 0..(seconds / step.as_secs_f64()) as u32 {
                let busy = self.concurrency.max_active().min(server.tasks);
                let per_s = (busy as f64 / server.entry_s).min(server.max_per_s);
                done += per_s * step.as_secs_f64();
                self.observation.now += step;
                self.observation.done += done as u64;
                done = done.fract();
                self.observation.busy = busy;
                self.observation.usage.cpu += step.mul_f64(busy as f64 * server.computing);
                self.concurrency.poll(self.observation);
            }
            self.concurrency.max_active()
        }
    }

    /// A server that needs `entry_s` for each entry and finishes at most `max_per_s`; workers have `tasks`
    /// directories, and compute for this share of their time.
    struct Server {
        entry_s: f64,
        max_per_s: f64,
        tasks: usize,
        computing: f64,
    }

    const SERVER: Server = Server {
        entry_s: 0.002,
        max_per_s: f64::MAX,
        tasks: MANY,
        computing: 0.02,
    };

    #[test]
    fn file_system_decides_number_of_workers() {
        for (scaling, first, most) in [
            (Scaling::Faster, PROCESSORS, PROCESSORS),
            (Scaling::Unknown, PROCESSORS, MAX_WAITING),
            (Scaling::Waiting, LatencyRule::FIRST, MAX_WAITING),
            (Scaling::Slower, 1, PROCESSORS),
        ] {
            let mut simulation = Simulation::new(None, scaling);
            assert_eq!(simulation.concurrency.max_active(), first);
            assert_eq!(simulation.run(false), first);
            assert_eq!(simulation.concurrency.workers(), most);
        }
    }

    #[test]
    fn workers_that_wait_are_raised_to_the_maximum_within_a_second() {
        let mut simulation = Simulation::new(None, Scaling::Waiting);
        assert_eq!(simulation.serve(1.0, &SERVER), MAX_WAITING);
    }

    #[test]
    fn workers_stay_near_what_the_server_can_do() {
        // 16 workers have all of its capacity.
        let server = Server {
            max_per_s: 8_000.0,
            ..SERVER
        };
        let mut simulation = Simulation::new(None, Scaling::Waiting);
        for _ in 0..20 {
            let workers = simulation.serve(0.5, &server);
            assert!((8..=64).contains(&workers), "{workers}");
        }
        // A slower server gets fewer, a faster one more.
        let slow = Server {
            max_per_s: 2_000.0,
            ..SERVER
        };
        assert!(simulation.serve(5.0, &slow) <= 16);
        assert_eq!(simulation.serve(5.0, &SERVER), MAX_WAITING);
    }

    #[test]
    fn first_entries_of_more_workers_are_not_taken_for_a_gain() {
        // One worker after the other opens a directory of 20 entries; 13 have all of the capacity.
        let (entry_s, opens_per_s, step) = (0.01, 65.0, LatencyRule::INTERVAL);
        let mut simulation = Simulation::new(None, Scaling::Waiting);
        let (mut left, mut opens, mut done, mut sum) = ([0.0; MAX_WAITING], 0.0, 0.0, 0);
        const POLLS: usize = 4_000;
        for _ in 0..POLLS {
            let busy = simulation.concurrency.max_active();
            sum += busy;
            opens += opens_per_s * step.as_secs_f64();
            for left in &mut left[..busy] {
                if *left <= 0.0 && opens >= 1.0 {
                    (*left, opens) = (20.0, opens - 1.0);
                } else if *left > 0.0 {
                    let entries = step.as_secs_f64() / entry_s;
                    (*left, done) = (*left - entries, done + entries);
                }
            }
            opens = f64::min(opens, 1.0);
            simulation.observation.now += step;
            simulation.observation.done = done as u64;
            simulation.observation.busy = busy;
            simulation.concurrency.poll(simulation.observation);
        }
        assert!(sum / POLLS <= 48, "{}", sum / POLLS);
    }

    #[test]
    fn workers_that_compute_are_never_more_than_processors() {
        let server = Server {
            computing: 0.9,
            ..SERVER
        };
        let mut simulation = Simulation::new(None, Scaling::Waiting);
        for _ in 0..20 {
            assert_eq!(simulation.serve(0.1, &server), PROCESSORS);
        }
    }

    #[test]
    fn workers_without_work_are_no_reason_for_more() {
        let one_directory = Server { tasks: 1, ..SERVER };
        let mut simulation = Simulation::new(None, Scaling::Waiting);
        assert_eq!(simulation.serve(5.0, &one_directory), LatencyRule::FIRST);
    }

    #[test]
    fn a_pause_and_a_rate_limit_teach_nothing() {
        let mut simulation = Simulation::new(None, Scaling::Waiting);
        simulation.observation.is_limited = true;
        assert_eq!(simulation.serve(1.0, &SERVER), LatencyRule::FIRST);
    }

    #[test]
    fn contention_reduces_workers_to_one_for_a_while() {
        let mut simulation = Simulation::new(None, Scaling::Faster);
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
            (None, Scaling::Unknown, PROCESSORS),
            (None, Scaling::Waiting, LatencyRule::FIRST),
            (None, Scaling::Slower, 1),
        ] {
            let mut simulation = Simulation::new(requested, scaling);
            assert_eq!(simulation.run(true), number);
        }
        let mut simulation = Simulation::new(None, Scaling::Faster);
        simulation.observation.is_limited = true;
        assert_eq!(simulation.run(true), 4);
    }

    #[test]
    fn requested_number_is_kept_within_workers() {
        for (requested, available, number) in [(3, 4, 3), (1_000, 4, 4), (1, 4, 1)] {
            let mut concurrency =
                Concurrency::new(PROCESSORS, available, Some(requested), Scaling::Slower);
            assert_eq!(concurrency.max_active(), number);
            assert_eq!(concurrency.poll_interval(), Duration::MAX);
            concurrency.request(None);
            assert_eq!(concurrency.max_active(), 1);
        }
    }

    #[test]
    fn intervals_grow_without_contention() {
        let mut simulation = Simulation::new(None, Scaling::Faster);
        for (is_contended, factor) in [(true, 1), (false, 2), (true, 2), (false, 4)] {
            simulation.poll(is_contended);
            assert_eq!(
                simulation.concurrency.poll_interval(),
                factor * MIN_INTERVAL
            );
        }
        simulation.concurrency.poll(simulation.observation); // nothing was removed
        assert_eq!(simulation.concurrency.poll_interval(), 8 * MIN_INTERVAL);
        assert_eq!(simulation.run(false), PROCESSORS);
        assert_eq!(simulation.run(true), 1);
        assert_eq!(simulation.concurrency.poll_interval(), MAX_INTERVAL);
        simulation.observation.now += REDUCTION;
        simulation.poll(true);
        assert_eq!(simulation.concurrency.poll_interval(), MIN_INTERVAL);
        let alone = Concurrency::new(1, MANY, None, Scaling::Faster);
        assert_eq!(alone.poll_interval(), Duration::MAX);
    }

    #[test]
    fn no_more_workers_are_allowed_than_could_be_started() {
        let mut concurrency = Concurrency::new(4, 4, Some(4), Scaling::Unknown);
        for (started, allowed) in [(3, 3), (0, 1)] {
            concurrency.set_workers(started);
            concurrency.request(Some(4));
            assert_eq!(concurrency.max_active(), allowed);
            concurrency.request(None);
            assert_eq!(concurrency.max_active(), allowed);
        }
    }

    #[test]
    fn scaling_is_unknown_if_targets_differ() {
        use Scaling::{Faster, Slower, Unknown};
        for (scalings, common) in [
            (vec![], Unknown),
            (vec![Slower], Slower),
            (vec![Faster, Faster], Faster),
            (vec![Faster, Slower], Unknown),
            (vec![Unknown, Faster], Unknown),
        ] {
            assert_eq!(common_scaling(scalings.into_iter()), common);
        }
    }

    /// Feeds samples of (removals, switches, blocks read, has other cause); returns the last answer.
    fn detects(samples: &[(u64, u64, u64, bool)]) -> bool {
        let mut detector = ContentionDetector::default();
        let (mut removed, mut counts) = (0, Usage::default());
        let mut consecutive = 0;
        for (removals, switches, blocks_read, has_other_cause) in samples {
            removed += removals;
            counts.voluntary_switches += switches;
            counts.blocks_read += blocks_read;
            consecutive = detector.take_sample(removed, counts, *has_other_cause);
        }
        consecutive >= MIN_CONSECUTIVE
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
        let counts = Usage {
            voluntary_switches: 100_000,
            ..Usage::default()
        };
        assert_eq!(detector.take_sample(10, counts, true), 0);
        for removed in [10_000, 20_000, 30_000, 40_000] {
            assert_eq!(detector.take_sample(removed, counts, false), 0);
        }
    }

    #[test]
    fn kernel_counts_a_sleep_as_voluntary_switch() {
        let before = crate::sys::usage();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(crate::sys::usage().voluntary_switches > before.voluntary_switches);
    }
}
