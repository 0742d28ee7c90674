//! Removing names, one after the other, as the options and the throttle permit.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::Release};
use std::time::{Duration, Instant};

use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::fs::CWD;
use rustix::io::Errno;

use super::names::{Chunk, Named};
use super::throttle::{Admission, Slot, Throttle};
use crate::filters::Filters;
use crate::syscalls::Calls;

/// Everything is to end: the job was cancelled.
#[derive(Debug)]
pub struct Stopped;

/// A name that could not be removed, what was tried, and why not.
pub struct Failure {
    pub named: Named,
    pub operation: &'static str,
    pub error: Errno,
}

/// After so long a name is looked at again before what it stands for is removed.
const LONGEST_TRUST: Duration = Duration::from_millis(50);

/// One worker's counts.
// No cache line of two workers: each adds to its own all the time. What a removal adds to lies in
// one: after each of them the processor's caches are full of what the kernel has looked at.
#[repr(C, align(128))]
pub struct Tally {
    pub files: AtomicU64,
    pub directories: AtomicU64,
    pub calls: Calls,
}

impl Tally {
    pub fn new(calls: Calls) -> Self {
        Self {
            files: AtomicU64::new(0),
            directories: AtomicU64::new(0),
            calls,
        }
    }

    pub fn add_directory(&self) {
        add(&self.directories);
    }
}

fn add(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed); // only its owner writes
}

/// What a worker removes names with.
pub struct Hands<'run> {
    throttle: &'run Throttle,
    filters: &'run Filters,
    pub tally: &'run Tally,
    pub slot: Slot,
    has_own_current_directory: bool,
    stood: u64,
    stands: bool,
    /// A directory was removed since it stands where it does: probably that one.
    has_left: bool,
}

/// That the thread has made a directory its current one: the kernel need not look a descriptor
/// up, and refer to what it stands for, for each name removed there. Nothing is, unless it was
/// possible; and not for longer than until the thread stands elsewhere.
#[derive(Clone, Copy)]
pub struct Footing(Option<(u64, RawFd)>);

impl<'run> Hands<'run> {
    /// Made in the thread that uses them.
    pub fn new(throttle: &'run Throttle, filters: &'run Filters, tally: &'run Tally) -> Self {
        Self {
            throttle,
            filters,
            tally,
            slot: Slot::default(),
            has_own_current_directory: crate::sys::own_current_directory().is_ok(),
            stood: 0,
            stands: false,
            has_left: false,
        }
    }

    /// Makes a directory the current one, to remove names of it.
    pub fn stand_in(&mut self, directory: BorrowedFd<'_>) -> Footing {
        self.stood += 1;
        let stands = self.has_own_current_directory && self.tally.calls.stand_in(directory).is_ok();
        self.stands |= stands;
        self.has_left = false;
        Footing(stands.then_some((self.stood, directory.as_raw_fd())))
    }

    /// Stands in no directory of a tree any more: one that is gone would keep its space, and its
    /// file system in use, until the thread stands elsewhere.
    pub fn step_out(&mut self) {
        self.stood += 1;
        self.has_left = false;
        if self.stands {
            self.stands = self.tally.calls.stand_in_root().is_err(); // then it stays until the end
        }
    }

    /// Makes ready for the removal of a directory.
    ///
    /// The thread stands in one that is gone if this is not the first since it stands there. That
    /// one keeps all that were above it, gone too by now, and the kernel would look at each of them
    /// with each further one (`shrink_dcache_parent`): in a deep chain that is most of its work.
    pub fn leave_directory(&mut self) {
        if std::mem::replace(&mut self.has_left, self.stands) {
            self.step_out();
        }
    }

    /// How a directory is named to the kernel.
    pub fn place<'here>(
        &self,
        directory: BorrowedFd<'here>,
        footing: Footing,
    ) -> BorrowedFd<'here> {
        match footing {
            Footing(Some(here)) if here == (self.stood, directory.as_raw_fd()) => CWD,
            _ => directory,
        }
    }

    /// Whether names are removed one straight after the other: nothing is to be waited for or to be
    /// looked at before.
    #[inline]
    pub fn is_unhindered(&self) -> bool {
        !self.filters.need_status() && self.throttle.is_open() && !self.throttle.is_gentle()
    }

    /// Waits as long as there is a reason to.
    pub fn wait(&mut self) -> std::result::Result<(), Stopped> {
        let is_admitted = self.throttle.admit(&mut self.slot);
        is_admitted.then_some(()).ok_or(Stopped)
    }

    /// The same before a removal; tells whether time has passed.
    pub fn wait_to_remove(&mut self) -> std::result::Result<bool, Stopped> {
        match self.throttle.admit_removal(&mut self.slot) {
            Admission::Immediate => Ok(false),
            Admission::Delayed => Ok(true),
            Admission::Cancelled => Err(Stopped),
        }
    }

    /// Removes names of one directory; returns how many it has removed.
    ///
    /// `footing` is what `stand_in` has returned for it; `reached` is told how far it has come.
    pub fn remove(
        &mut self,
        directory: BorrowedFd<'_>,
        footing: Footing,
        chunk: &Chunk,
        range: Range<usize>,
        reached: Option<&AtomicUsize>,
        failures: &mut Vec<Failure>,
    ) -> std::result::Result<u64, Stopped> {
        let directory = self.place(directory, footing);
        let mut removed = 0;
        let mut unlinks = self.tally.calls.unlinks();
        for at in range {
            if let Some(reached) = reached {
                reached.store(at, Release);
            }
            let named = chunk.files[at];
            let name = chunk.name(named);
            let result = if self.is_unhindered() {
                unlinks.unlink(directory, name)
            } else {
                unlinks.interrupt();
                if !self.wait_for_selected(directory, chunk, named, failures)? {
                    continue;
                }
                if self.throttle.is_gentle() {
                    self.remove_gently(directory, name)
                } else {
                    self.tally.calls.unlink(directory, name)
                }
            };
            match result {
                Ok(()) => {
                    removed += 1;
                    add(&self.tally.files);
                }
                Err(Errno::NOENT) => (), // somebody else has removed it
                // A directory stands in its place: it is found when the one above turns out not
                // to be empty, unless that is kept anyway.
                Err(Errno::ISDIR) if !self.filters.are_active() => (),
                Err(error) => {
                    let operation = "remove";
                    failures.push(Failure {
                        named,
                        operation,
                        error,
                    });
                }
            }
        }
        Ok(removed)
    }

    /// Waits until a name may be removed; tells whether the filters select it then.
    fn wait_for_selected(
        &mut self,
        directory: BorrowedFd<'_>,
        chunk: &Chunk,
        named: Named,
        failures: &mut Vec<Failure>,
    ) -> std::result::Result<bool, Stopped> {
        self.wait()?;
        let looked_at = self.filters.need_status().then(Instant::now);
        if !self.is_selected(directory, chunk, named, failures) {
            return Ok(false);
        }
        // What was true before a pause need not be true after it; one by SIGSTOP is noticed by
        // the time it took.
        let has_waited = self.wait_to_remove()?;
        let is_old = has_waited || looked_at.is_some_and(|at| at.elapsed() > LONGEST_TRUST);
        Ok(!is_old || self.is_selected(directory, chunk, named, failures))
    }

    /// Tells whether the filters select what a name stands for now; its name was looked at.
    fn is_selected(
        &self,
        directory: BorrowedFd<'_>,
        chunk: &Chunk,
        named: Named,
        failures: &mut Vec<Failure>,
    ) -> bool {
        if !self.filters.need_status() {
            return true;
        }
        match self.tally.calls.stat(directory, chunk.name(named)) {
            Ok(status) => self.filters.match_stat(&status),
            Err(Errno::NOENT) => false,
            Err(error) => {
                let operation = "stat";
                failures.push(Failure {
                    named,
                    operation,
                    error,
                });
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::thread::{scope, sleep, yield_now};

    use super::*;
    use crate::syscalls::Call;

    const NAMES: usize = 300_000;
    const PAUSE: Duration = Duration::from_millis(300);

    #[test]
    fn names_are_removed_where_they_were_read_wherever_one_stands_by_now() {
        let filters = Filters::default();
        let (throttle, tally) = (Throttle::new(1, None, false), Tally::new(Calls::new(false)));
        let mut chunk = Chunk::default();
        chunk.add_file(c"name", 0);
        let ways = [(0, true), (1, true), (2, true), (3, true), (0, false)];
        for (then, may_stand) in ways {
            let scratch = tempfile::tempdir().unwrap();
            let [here, other] = ["here", "other"].map(|name| {
                let path = scratch.path().join(name);
                std::fs::create_dir(&path).unwrap();
                std::fs::write(path.join("name"), "").unwrap();
                File::open(path).unwrap()
            });
            scope(|threads| {
                threads.spawn(|| {
                    let mut hands = Hands::new(&throttle, &filters, &tally);
                    hands.has_own_current_directory &= may_stand;
                    hands.stand_in(other.as_fd());
                    let footing = hands.stand_in(here.as_fd());
                    let footing = match then {
                        1 => {
                            hands.stand_in(other.as_fd());
                            footing
                        }
                        2 => {
                            hands.step_out();
                            footing
                        }
                        3 => hands.stand_in(other.as_fd()), // which is not that of this directory
                        _ => footing,
                    };
                    let removed =
                        hands.remove(here.as_fd(), footing, &chunk, 0..1, None, &mut Vec::new());
                    assert_eq!(removed.unwrap(), 1);
                });
            });
            assert!(!scratch.path().join("here/name").exists());
            assert!(scratch.path().join("other/name").exists());
        }
    }

    #[test]
    fn where_one_stands_is_nobody_elses_current_directory() {
        let filters = Filters::default();
        let (throttle, tally) = (Throttle::new(1, None, false), Tally::new(Calls::new(false)));
        let scratch = tempfile::tempdir().unwrap();
        let directory = File::open(scratch.path()).unwrap();
        let before = std::env::current_dir().unwrap();
        let stood = scope(|threads| {
            let stand = || {
                let mut hands = Hands::new(&throttle, &filters, &tally);
                let footing = hands.stand_in(directory.as_fd());
                let there = std::env::current_dir().unwrap();
                hands.step_out();
                (footing.0.is_some(), there, std::env::current_dir().unwrap())
            };
            threads.spawn(stand).join().unwrap()
        });
        let there = scratch.path().canonicalize().unwrap();
        let not_at_all = (false, before.clone(), before.clone());
        assert!(stood == (true, there, "/".into()) || stood == not_at_all);
        assert_eq!(std::env::current_dir().unwrap(), before);
    }

    #[test]
    fn a_pause_is_no_time_of_a_call() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = File::open(scratch.path()).unwrap();
        let mut chunk = Chunk::default();
        for _ in 0..NAMES {
            chunk.add_file(c"gone already", 0);
        }
        let was_paused_midway = (0..20).any(|_| {
            let filters = Filters::default();
            let (throttle, tally) = (Throttle::new(1, None, false), Tally::new(Calls::new(false)));
            let made = || tally.calls.count(Call::Unlinkat);
            let began = Instant::now();
            let is_midway = scope(|threads| {
                threads.spawn(|| {
                    let mut hands = Hands::new(&throttle, &filters, &tally);
                    throttle.acquire_slot(&mut hands.slot);
                    let footing = hands.stand_in(directory.as_fd());
                    let (all, mut failures) = (0..NAMES, Vec::new());
                    let removed =
                        hands.remove(directory.as_fd(), footing, &chunk, all, None, &mut failures);
                    assert_eq!(removed.unwrap(), 0);
                });
                while made().calls == 0 {
                    yield_now();
                }
                throttle.set_paused(true);
                sleep(PAUSE / 10);
                let before = made().calls;
                sleep(PAUSE);
                let is_midway = before < NAMES as u64 && made().calls == before;
                throttle.set_paused(false);
                is_midway
            });
            let worked = began.elapsed() - PAUSE;
            assert!(!is_midway || u128::from(made().nanoseconds) < worked.as_nanos());
            is_midway
        });
        assert!(was_paused_midway);
    }
}
