//! Work that walkers give to those who have none.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fd::OwnedFd;

use super::dirent_batch::Slice;

/// A directory that somebody has told, and that is open.
#[derive(Clone, Debug)]
pub struct Place {
    /// Index of the surveyed directory it lies in.
    pub root: usize,
    pub descriptor: Arc<OwnedFd>,
    pub number: u64,
    pub inode: u64,
    /// Steps from the root.
    pub depth: u64,
}

#[derive(Debug)]
pub enum Job {
    /// Read a surveyed directory and all below it.
    Root(usize),
    /// Read subdirectories, whose names end in NULs.
    Directories { place: Place, names: Vec<u8> },
    /// Look at some of the names in a directory, and read the subdirectories among them.
    Names {
        place: Place,
        owner: u32,
        slice: Slice,
    },
}

/// The work that waits, and who waits for work.
pub struct Pool {
    state: Mutex<State>,
    wakes: Condvar,
    /// How many more jobs would be taken at once.
    wanted: AtomicIsize,
    queued: AtomicUsize,
    most_queued: usize,
}

struct State {
    jobs: VecDeque<Job>,
    walkers: usize,
    idle: usize,
}

impl Pool {
    /// Is for so many walkers, and begins with the surveyed directories.
    pub fn new(walkers: usize, roots: usize) -> Self {
        let state = State {
            jobs: (0..roots).map(Job::Root).collect(),
            walkers,
            idle: 0,
        };
        Self {
            state: Mutex::new(state),
            wakes: Condvar::new(),
            wanted: AtomicIsize::new(0),
            queued: AtomicUsize::new(roots),
            most_queued: if walkers > 1 { walkers } else { 0 },
        }
    }

    /// Tells that one of the walkers will never come.
    pub fn lose_walker(&self) {
        let mut state = self.lock();
        state.walkers -= 1;
        self.wakes.notify_all();
    }

    /// Waits for work; `None` when all walkers do, for then there will be none.
    pub fn next(&self) -> Option<Job> {
        let mut state = self.lock();
        state.idle += 1;
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.idle -= 1;
                self.publish(&state);
                return Some(job);
            }
            if state.idle == state.walkers {
                self.wakes.notify_all();
                return None;
            }
            self.publish(&state);
            state = self
                .wakes
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Tells whether somebody has nothing to do, to whom nothing was given yet.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Relaxed) > 0
    }

    /// Tells whether a slice of a large directory may wait: it is soon wanted, and the queue short.
    pub fn has_room(&self) -> bool {
        self.queued.load(Relaxed) < self.most_queued
    }

    pub fn give(&self, job: Job) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        self.publish(&state);
        self.wakes.notify_one();
    }

    fn publish(&self, state: &State) {
        let wanted = state.idle as isize - state.jobs.len() as isize;
        self.wanted.store(wanted, Relaxed);
        self.queued.store(state.jobs.len(), Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
