//! Whether workers wait for each other: they sleep often, and not for a disk.

/// Of so many removals at least it is seen, and it is so where for this many one has slept (xfs,
/// Linux 6.18, two workers: for 4 to 6 where they take up to twice the time of one, for 50 and more
/// where they gain).
const SAMPLE: u64 = 256;
const REMOVALS_A_SLEEP: u64 = 16;

/// How often all threads have slept so far, and what they had to read.
#[derive(Clone, Copy, Default)]
pub struct Waits {
    pub sleeps: u64,
    /// Of 512 bytes each, from a disk.
    pub blocks_read: u64,
}

impl Waits {
    pub fn now() -> Self {
        let (sleeps, blocks_read) = crate::foreign::waits();
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
}

impl Waiting {
    /// Tells whether they have waited for each other since it was told last, as far as it can be
    /// told by now.
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
        *self = Self { removed, waits };
        !has_other_reason && sleeps * REMOVALS_A_SLEEP > entries && blocks_read < sleeps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it is seen after so many removals, sleeps and blocks read.
    fn is_seen(entries: u64, sleeps: u64, blocks_read: u64, has_other_reason: bool) -> bool {
        let mut waiting = Waiting {
            removed: 7,
            waits: Waits {
                sleeps: 100_000,
                blocks_read: 100_000,
            },
        };
        let waits = Waits {
            sleeps: 100_000 + sleeps,
            blocks_read: 100_000 + blocks_read,
        };
        waiting.is_for_each_other(7 + entries, waits, has_other_reason)
    }

    #[test]
    fn who_sleeps_often_waits_for_others() {
        assert!(is_seen(1_600, 101, 0, false));
        assert!(!is_seen(1_600, 100, 0, false));
        assert!(!is_seen(SAMPLE - 1, SAMPLE, 0, false));
        // not for a disk, nor for what is known to hold it back
        assert!(is_seen(1_600, 101, 100, false));
        assert!(!is_seen(1_600, 101, 101, false));
        assert!(!is_seen(1_600, 1_600, 0, true));
    }

    #[test]
    fn what_was_slept_for_another_reason_does_not_count_later() {
        let mut waiting = Waiting::default();
        let waits = Waits {
            sleeps: 100_000,
            blocks_read: 0,
        };
        assert!(!waiting.is_for_each_other(10, waits, true));
        assert!(!waiting.is_for_each_other(10_000, waits, false));
    }

    #[test]
    fn how_often_one_has_slept_is_told_by_the_kernel() {
        let before = Waits::now();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(Waits::now().sleeps > before.sleeps);
    }
}
