//! Detection of lock contention: the threads sleep often, and not for disk reads.

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

/// Compares each sample with the one before.
#[derive(Default)]
pub struct ContentionDetector {
    removed: u64,
    counts: SchedCounts,
    consecutive: u32,
}

impl ContentionDetector {
    /// Takes a sample; returns whether the workers wait for each other's locks.
    ///
    /// `removed` is the total of all workers. `has_other_cause`: the threads may sleep for another
    /// reason, so this sample counts as none.
    pub fn is_lock_contention(
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
