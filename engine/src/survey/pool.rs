//! The pool of jobs that walkers share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fd::OwnedFd;

use super::dirent_batch::DirentBatch;

/// An open directory that is emitted already.
#[derive(Clone, Debug)]
pub struct OpenDir {
    /// Index of its root.
    pub root: usize,
    pub descriptor: Arc<OwnedFd>,
    pub number: u64,
    pub inode: u64,
    /// Levels below the root.
    pub depth: u64,
}

#[derive(Debug)]
pub enum Job {
    /// Read a root and everything below it.
    Root(usize),
    /// Read subdirectories. Each name ends in a NUL.
    Subdirs { dir: OpenDir, names: Vec<u8> },
    /// Process some of the names in a directory, and read the subdirectories among them.
    Names {
        dir: OpenDir,
        owner: u32,
        dirents: DirentBatch,
    },
}

/// Queued jobs, and the count of idle walkers.
pub struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    /// Idle walkers minus queued jobs.
    unserved_walkers: AtomicIsize,
    queued: AtomicUsize,
    max_queued: usize,
}

struct State {
    jobs: VecDeque<Job>,
    walkers: usize,
    idle: usize,
}

impl Pool {
    /// Creates a pool with one job for each root.
    pub fn new(walkers: usize, roots: usize) -> Self {
        let state = State {
            jobs: (0..roots).map(Job::Root).collect(),
            walkers,
            idle: 0,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            unserved_walkers: AtomicIsize::new(0),
            queued: AtomicUsize::new(roots),
            max_queued: if walkers > 1 { walkers } else { 0 },
        }
    }

    /// Removes a walker that has failed to start.
    pub fn remove_walker(&self) {
        let mut state = self.lock();
        state.walkers -= 1;
        self.changed.notify_all();
    }

    /// Waits for a job; returns `None` when all walkers are idle.
    pub fn pop(&self) -> Option<Job> {
        let mut state = self.lock();
        state.idle += 1;
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.idle -= 1;
                self.publish(&state);
                return Some(job);
            }
            if state.idle == state.walkers {
                self.changed.notify_all();
                return None;
            }
            self.publish(&state);
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns whether a walker is idle and no job is queued for it.
    pub fn has_idle_walker(&self) -> bool {
        self.unserved_walkers.load(Relaxed) > 0
    }

    /// Returns whether a part of a large directory may be queued.
    pub fn has_queue_space(&self) -> bool {
        self.queued.load(Relaxed) < self.max_queued
    }

    pub fn push(&self, job: Job) {
        let mut state = self.lock();
        state.jobs.push_back(job);
        self.publish(&state);
        self.changed.notify_one();
    }

    fn publish(&self, state: &State) {
        let unserved_walkers = state.idle as isize - state.jobs.len() as isize;
        self.unserved_walkers.store(unserved_walkers, Relaxed);
        self.queued.store(state.jobs.len(), Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
