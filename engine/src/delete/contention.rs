//! Whether workers wait for each other: they sleep often, and not for a disk.

/// Of so many removals at least it is seen, and it is so where for this many one has slept, four
/// times running (xfs, Linux 6.18, two workers: for 1 to 10 nearly each time where they take up to
/// twice the time of one; for 50 and more, but for once in a while, where they gain).
const SAMPLE: u64 = 128;
const REMOVALS_A_SLEEP: u64 = 16;
const TIMES_RUNNING: u32 = 4;

/// How often all threads have slept so far, and what they had to read.
#[derive(Clone, Copy, Default)]
pub struct Waits {
    pub sleeps: u64,
    /// Of 512 bytes each, from a disk.
    pub blocks_read: u64,
}

impl Waits {
    pub fn now() -> Self {
        let (sleeps, blocks_read) = crate::sys::waits();
        Self {
            sleeps,
            blocks_read,
        }
    }
}

/// What was so when it was last seen.
#[derive(Default)]
pub struct Waiting {
    removed: u64,
    waits: Waits,
    times_running: u32,
}

impl Waiting {
    /// Tells whether they wait for each other.
    ///
    /// `removed`: entries, by all workers so far. `has_other_reason`: to sleep, or to ask.
    pub fn is_for_each_other(
        &mut self,
        removed: u64,
        waits: Waits,
        has_other_reason: bool,
    ) -> bool {
        let entries = removed - self.removed;
        if entries < SAMPLE && !has_other_reason {
            return false;
        }
        let sleeps = waits.sleeps.saturating_sub(self.waits.sleeps);
        let blocks_read = waits.blocks_read.saturating_sub(self.waits.blocks_read);
        let is_often = sleeps * REMOVALS_A_SLEEP > entries && blocks_read < sleeps;
        let times_running = match is_often && !has_other_reason {
            true => self.times_running + 1,
            false => 0,
        };
        *self = Self {
            removed,
            waits,
            times_running,
        };
        times_running >= TIMES_RUNNING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is seen when each time so many were removed, slept and read.
    fn is_seen(times: &[(u64, u64, u64, bool)]) -> bool {
        let mut waiting = Waiting::default();
        let (mut removed, mut waits) = (0, Waits::default());
        let mut is_seen = false;
        for (entries, sleeps, blocks_read, has_other_reason) in times {
            removed += entries;
            waits.sleeps += sleeps;
            waits.blocks_read += blocks_read;
            is_seen = waiting.is_for_each_other(removed, waits, *has_other_reason);
        }
        is_seen
    }

    #[test]
    fn who_sleeps_often_waits_for_others() {
        let is_seen_each_time = |entries, sleeps, blocks_read, has_other_reason| {
            is_seen(&[(entries, sleeps, blocks_read, has_other_reason); TIMES_RUNNING as usize])
        };
        assert!(is_seen_each_time(1_600, 101, 0, false));
        assert!(!is_seen_each_time(1_600, 100, 0, false));
        assert!(!is_seen_each_time(SAMPLE / 8, SAMPLE, 0, false));
        // not for a disk, nor for what is known to hold it back
        assert!(is_seen_each_time(1_600, 101, 100, false));
        assert!(!is_seen_each_time(1_600, 101, 101, false));
        assert!(!is_seen_each_time(1_600, 1_600, 0, true));
    }

    #[test]
    fn once_in_a_while_is_not_often() {
        let (often, seldom) = ((1_600, 800, 0, false), (1_600, 1, 0, false));
        assert!(!is_seen(&[often; 3]));
        assert!(!is_seen(&[often, often, often, seldom, often]));
        assert!(is_seen(&[seldom, often, often, often, often]));
        // what is too little to tell is told with what comes next
        let (little, rest) = ((100, 50, 0, false), (SAMPLE, 0, 0, false));
        assert!(is_seen(&[often, often, often, little, rest]));
    }

    #[test]
    fn what_was_slept_for_another_reason_does_not_count_later() {
        let mut waiting = Waiting::default();
        let waits = Waits {
            sleeps: 100_000,
            blocks_read: 0,
        };
        assert!(!waiting.is_for_each_other(10, waits, true));
        for removed in [10_000, 20_000, 30_000, 40_000] {
            assert!(!waiting.is_for_each_other(removed, waits, false));
        }
    }

    #[test]
    fn how_often_one_has_slept_is_told_by_the_kernel() {
        let before = Waits::now();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(Waits::now().sleeps > before.sleeps);
    }
}
