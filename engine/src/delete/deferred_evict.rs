//! Deferred eviction, for file systems that serialize the removals in one directory.
//!
//! The kernel evicts the inode of an unlinked file when its last descriptor is closed. One worker
//! removes names. A helper opens names ahead of it (`O_PATH`) and closes them once they are
//! removed, so the eviction happens in the helper's close(), outside the directory lock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Acquire};
use std::sync::Arc;
use std::time::Duration;

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::OFlags;

use super::remover::Remover;
use crate::names::NameBatch;

/// Descriptors of one helper. More were no faster.
pub(super) const MAX_EVICT_FDS: usize = 256;

/// Names that the helper opens, or closes, in a row.
const BATCH_SIZE: usize = 64;

/// When overtaken, the helper restarts this many names ahead.
const LEAD: usize = 32;

/// The helper spins this often without work, then sleeps.
const MAX_SPINS: u32 = 200;
const POLL_INTERVAL: Duration = Duration::from_micros(50);

/// The state that the remover and its helper share. The helper stops once the remover has dropped it.
pub struct DeferredEvict {
    batch: Arc<NameBatch>,
    /// The end of the files in the batch.
    end: usize,
    /// The index in the batch's files that the remover has reached.
    pub progress: AtomicUsize,
}

impl DeferredEvict {
    /// Returns the state of a helper for the names in this range.
    pub fn new(batch: &Arc<NameBatch>, begin: usize, end: usize) -> Arc<Self> {
        Arc::new(Self {
            batch: Arc::clone(batch),
            end,
            progress: AtomicUsize::new(begin),
        })
    }

    /// Opens and closes names until the remover is done or the throttle limits any worker.
    ///
    /// `remover` is that of the helper's thread.
    pub fn run(
        self: Arc<Self>,
        remover: &mut Remover<'_>,
        directory: BorrowedFd<'_>,
        max_fds: usize,
    ) {
        let cwd = remover.enter_dir(directory);
        let calls = &remover.tally.calls;
        let dirfd = remover.dirfd(directory, cwd);
        let files = &self.batch.refs[..self.end];
        let batch_size = BATCH_SIZE.min(max_fds / 2);
        let mut pinned: VecDeque<(usize, OwnedFd)> = VecDeque::new();
        let (mut next, mut spins) = (0, 0);
        while Arc::strong_count(&self) > 1 && remover.is_unrestricted() {
            let progress = self.progress.load(Acquire);
            next = next.max(progress + LEAD);
            spins += 1;
            let batch_end = pinned.get(batch_size - 1);
            if batch_end.is_some_and(|(at, _)| *at < progress) {
                // Newest first, in the order of the kernel's orphan list.
                for (_, path_fd) in pinned.drain(..batch_size).rev() {
                    calls.close(path_fd);
                }
            } else if next < files.len() && pinned.len() + batch_size <= max_fds {
                let end = (next + batch_size).min(files.len());
                while next < end {
                    let (at, name) = (next, self.batch.name(files[next]));
                    next += 1;
                    let Ok(path_fd) = calls.openat(dirfd, name, OFlags::PATH) else {
                        break; // the remover was probably faster
                    };
                    pinned.push_back((at, path_fd));
                }
            } else if spins < MAX_SPINS {
                std::hint::spin_loop();
                continue;
            } else {
                std::thread::sleep(POLL_INTERVAL);
            }
            spins = 0;
        }
        for (_, path_fd) in pinned.drain(..).rev() {
            calls.close(path_fd);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Release;
    use std::thread::{scope, yield_now};

    use rustix::fs::FileType;

    use super::*;
    use crate::concurrency::{Concurrency, Scaling};
    use crate::delete::output::Failures;
    use crate::delete::remover::Tally;
    use crate::delete::worker::{Part, Task, Worker};
    use crate::delete::{targets, Arguments, Context};
    use crate::syscalls::{Syscall, Syscalls};

    const FILES: usize = 2_000;

    /// Runs a helper on a directory of files while `act` plays the remover.
    fn run_helper(max_open: usize, act: impl FnOnce(&Context, &DeferredEvict, &Syscalls)) {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().canonicalize().unwrap().join("target");
        std::fs::create_dir(&target).unwrap();
        let mut batch = NameBatch::default();
        for number in 0..FILES {
            let name = std::ffi::CString::new(number.to_string()).unwrap();
            std::fs::write(target.join(name.to_str().unwrap()), "").unwrap();
            batch.add(FileType::RegularFile, &name, 0);
        }
        let arguments = Arguments {
            targets: vec![target.clone().into()],
            ..Arguments::default()
        };
        let concurrency = Concurrency::new(2, 2, None, Scaling::Faster);
        let context = Context::new(&arguments, concurrency, 4 * max_open, Failures::default());
        let (open_calls, tally) = (Syscalls::default(), Tally::default());
        let Ok((directory, descriptor)) = targets::open(&arguments, 0, &open_calls) else {
            panic!("the target cannot be opened");
        };
        directory.add_pending();
        let evict = DeferredEvict::new(&Arc::new(batch), 0, FILES);
        let part = Part::Evict(Arc::clone(&evict));
        scope(|threads| {
            let helper = threads.spawn(|| {
                let mut worker = Worker::new(&context, &tally);
                context.throttle.acquire_slot();
                let task = Task {
                    directory,
                    descriptor,
                    part,
                };
                assert!(worker.run(task).is_ok());
                context.throttle.release_slot();
            });
            act(&context, &evict, &tally.calls);
            drop(evict);
            helper.join().unwrap();
        });
        let count = |call: Syscall| tally.calls.count(call).calls;
        assert_eq!(count(Syscall::Close), count(Syscall::Openat) + 1); // and the directory
        assert_eq!(count(Syscall::Unlinkat), 0);
        assert_eq!(std::fs::read_dir(&target).unwrap().count(), FILES);
    }

    fn wait_for(mut condition: impl FnMut() -> bool) {
        while !condition() {
            yield_now();
        }
    }

    #[test]
    fn helper_limits_its_descriptors_and_closes_removed_names() {
        for (max_open, max_fds) in [(4, 8), (31, 62), (2_048, MAX_EVICT_FDS as u64)] {
            run_helper(max_open, |_, evict, calls| {
                let count = |call: Syscall| calls.count(call).calls;
                wait_for(|| count(Syscall::Openat) == max_fds);
                assert_eq!(count(Syscall::Close), 0);
                // it opens ahead of the remover, and closes what the remover has passed
                evict.progress.store(LEAD + max_fds as usize, Release);
                wait_for(|| {
                    count(Syscall::Openat) == 2 * max_fds && count(Syscall::Close) == max_fds
                });
            });
        }
    }

    #[test]
    fn helper_takes_no_concurrency_slot() {
        run_helper(64, |context, _, calls| {
            wait_for(|| calls.count(Syscall::Openat).calls > 0);
            // the remover gets the only slot
            context.throttle.set_max_active(1);
            context.throttle.acquire_slot();
            assert!(context.throttle.is_open());
            context.throttle.release_slot();
        });
    }

    #[test]
    fn helper_closes_all_descriptors_when_throttled() {
        for change in [
            |context: &Context| context.throttle.set_paused(true),
            |context: &Context| context.throttle.set_rate(Some(1)),
            |context: &Context| context.throttle.set_gentle(true),
        ] {
            run_helper(64, |context, _, calls| {
                wait_for(|| calls.count(Syscall::Openat).calls > 0);
                change(context);
                // and the directory, though the remover is not done
                wait_for(|| {
                    calls.count(Syscall::Close).calls == calls.count(Syscall::Openat).calls + 1
                });
            });
        }
    }
}
