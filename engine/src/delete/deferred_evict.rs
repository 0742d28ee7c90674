//! Two in one directory where names can be removed only one after the other: one removes them, the
//! other one frees their inodes.
//!
//! What has no name any more is freed when nobody has it open. So the other one opens names ahead
//! of the first, and closes what the first has removed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Acquire, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use rustix::fd::{AsFd, OwnedFd};

use super::dir_stack::Walk;
use super::names::Chunk;
use super::shared_dir::Directory;
use super::work_queue::Task;
use super::worker::{Outcome, Worker};

/// More are not kept at the same time; more were no faster.
const MOST_KEPT: usize = 256;

/// So many are opened, or closed, in a row.
const BURST: usize = 64;

/// Whoever is caught up with begins so far ahead that the two do not meet in between.
const AHEAD: usize = 32;

/// Looks for something to do before a sleep.
const LOOKS: u32 = 200;
const SLEEP: Duration = Duration::from_micros(50);

/// What the two know of each other.
pub struct Keeping {
    chunk: Arc<Chunk>,
    /// The place in the chunk's files that the one who removes has reached.
    reached: AtomicUsize,
    is_over: AtomicBool,
}

/// The one who keeps, as the one who removes knows it; gone with this.
pub struct Keeper(Option<Arc<Keeping>>);

impl Keeper {
    pub fn none() -> Self {
        Self(None)
    }

    pub fn reached(&self) -> Option<&AtomicUsize> {
        self.0.as_ref().map(|keeping| &keeping.reached)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Some(keeping) = &self.0 {
            keeping.is_over.store(true, Relaxed);
        }
    }
}

impl Worker<'_> {
    /// Has somebody keep what this worker is about to remove.
    pub(super) fn give_keeping(
        &self,
        walk: &mut Walk,
        chunk: &Arc<Chunk>,
        begin: usize,
        keeper: &mut Keeper,
    ) {
        let Ok(descriptor) = self.calls.duplicate(walk.descriptor()) else {
            return;
        };
        let directory = Arc::clone(walk.share(walk.levels.len() - 1));
        directory.begin();
        let keeping = Arc::new(Keeping {
            chunk: Arc::clone(chunk),
            reached: AtomicUsize::new(begin),
            is_over: AtomicBool::new(false),
        });
        *keeper = Keeper(Some(Arc::clone(&keeping)));
        self.run
            .queue
            .push(Task::Evict(directory, descriptor, keeping));
    }

    /// Keeps what another one removes, and frees it, until that one is done or somebody is to wait.
    pub(super) fn keep(
        &mut self,
        directory: Arc<Directory>,
        descriptor: OwnedFd,
        keeping: &Keeping,
    ) -> Outcome<()> {
        // It works for the one who removes, in whose place it is: that one must never wait for it.
        self.run.throttle.release_slot(&mut self.hands.slot);
        let footing = self.hands.stand_in(descriptor.as_fd());
        let here = self.hands.place(descriptor.as_fd(), footing);
        let files = &keeping.chunk.files;
        let most = self.most_open.min(MOST_KEPT);
        let burst = BURST.min(most / 2);
        let mut kept: VecDeque<(usize, OwnedFd)> = VecDeque::new();
        let (mut next, mut looks) = (0, 0);
        while !keeping.is_over.load(Relaxed) && self.hands.is_unhindered() {
            let reached = keeping.reached.load(Acquire);
            next = next.max(reached + AHEAD);
            looks += 1;
            if kept.get(burst - 1).is_some_and(|(at, _)| *at < reached) {
                // the last first: the kernel lists what is to be freed, the newest at its head
                for (_, one) in kept.drain(..burst).rev() {
                    self.calls.close(one);
                }
            } else if next < files.len() && kept.len() + burst <= most {
                let end = (next + burst).min(files.len());
                while next < end {
                    let (at, name) = (next, keeping.chunk.name(files[next]));
                    next += 1;
                    let Ok(one) = self.calls.open_to_keep(here, name) else {
                        break; // probably the other one was faster
                    };
                    kept.push_back((at, one));
                }
            } else if looks < LOOKS {
                std::hint::spin_loop();
                continue;
            } else {
                std::thread::sleep(SLEEP);
            }
            looks = 0;
        }
        for (_, one) in kept.drain(..).rev() {
            self.calls.close(one);
        }
        self.run.throttle.acquire_slot(&mut self.hands.slot);
        self.release(directory, Some(descriptor))
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{scope, yield_now};

    use super::*;
    use crate::delete::remover::Tally;
    use crate::delete::{targets, Arguments, Run};
    use crate::syscalls::{Call, Calls};

    const FILES: usize = 2_000;

    /// Has somebody keep the files of a directory for whoever does what is asked.
    fn kept_while(most_open: usize, act: impl FnOnce(&Run, &Keeping, &Calls)) {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().canonicalize().unwrap().join("target");
        std::fs::create_dir(&target).unwrap();
        let mut chunk = Chunk::default();
        for number in 0..FILES {
            let name = std::ffi::CString::new(number.to_string()).unwrap();
            std::fs::write(target.join(name.to_str().unwrap()), "").unwrap();
            chunk.add_file(&name, 0);
        }
        let asked = Arguments {
            targets: vec![target.clone().into()],
            ..Arguments::default()
        };
        let run = Run::new(&asked, 2);
        let (way, tally) = (Calls::new(false), Tally::new(Calls::new(false)));
        let Ok(Task::Tree(directory, descriptor)) = targets::open(&asked, 0, &way) else {
            panic!("a target is begun as a whole");
        };
        directory.begin();
        let keeper = Keeper(Some(Arc::new(Keeping {
            chunk: Arc::new(chunk),
            reached: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        })));
        let keeping = Arc::clone(keeper.0.as_ref().unwrap());
        scope(|threads| {
            let keep = threads.spawn(|| {
                let mut worker = Worker::new(&run, &tally, most_open);
                run.throttle.acquire_slot(&mut worker.hands.slot);
                assert!(worker.keep(directory, descriptor, &keeping).is_ok());
                run.throttle.release_slot(&mut worker.hands.slot);
            });
            act(&run, &keeping, &tally.calls);
            drop(keeper);
            keep.join().unwrap();
        });
        let made = |call| tally.calls.count(call).calls;
        assert_eq!(made(Call::Close), made(Call::Openat) + 1); // and the directory
        assert_eq!(made(Call::Unlinkat), 0);
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), FILES);
    }

    fn wait_for(mut is_so: impl FnMut() -> bool) {
        while !is_so() {
            yield_now();
        }
    }

    #[test]
    fn no_more_are_kept_than_may_be_and_those_are_closed_that_the_other_has_passed() {
        for (most_open, most) in [(4, 4), (63, 62), (2_048, MOST_KEPT as u64)] {
            kept_while(most_open, |_, keeping, calls| {
                let made = |call| calls.count(call).calls;
                wait_for(|| made(Call::Openat) == most);
                assert_eq!(made(Call::Close), 0);
                // it begins a little ahead, and closes what is behind the other
                keeping.reached.store(AHEAD + most as usize, Relaxed);
                wait_for(|| made(Call::Openat) == 2 * most && made(Call::Close) == most);
            });
        }
    }

    #[test]
    fn whoever_keeps_is_in_nobodys_way() {
        kept_while(64, |run, _, calls| {
            wait_for(|| calls.count(Call::Openat).calls > 0);
            // There is a place for one: whoever removes has it
            run.throttle.set_max_active(1);
            let mut slot = crate::delete::throttle::Slot::default();
            run.throttle.acquire_slot(&mut slot);
            assert!(run.throttle.is_open());
            run.throttle.release_slot(&mut slot);
        });
    }

    #[test]
    fn nothing_is_kept_while_somebody_has_to_wait() {
        for change in [
            |run: &Run| run.throttle.set_paused(true),
            |run: &Run| run.throttle.set_rate(Some(1)),
            |run: &Run| run.throttle.set_gentle(true),
        ] {
            kept_while(64, |run, _, calls| {
                wait_for(|| calls.count(Call::Openat).calls > 0);
                change(run);
                // and the directory, though nobody has said that it is over
                wait_for(|| calls.count(Call::Close).calls == calls.count(Call::Openat).calls + 1);
            });
        }
    }
}
