//! The work that waits for a worker, and who waits for work.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};

use rustix::fd::OwnedFd;

use super::deferred_evict::Keeping;
use super::names::Chunk;
use super::shared_dir::Directory;

/// A part of the work. Each holds a descriptor of its own of its directory.
pub enum Task {
    /// A directory from its begin to its end.
    Whole(Arc<Directory>, OwnedFd),
    /// Some of the directories in a directory (see `NameStack::copy`), and their number.
    Below(Arc<Directory>, OwnedFd, Box<[u8]>, u32),
    /// Some of the other names in a directory.
    Names(Arc<Directory>, OwnedFd, Arc<Chunk>, Range<usize>),
    /// To keep, and to free, what another one removes in a directory.
    Keep(Arc<Directory>, OwnedFd, Arc<Keeping>),
}

struct Queue {
    tasks: VecDeque<Task>,
    idle: usize,
    is_over: bool,
}

/// Hands tasks to workers; over when all of them are idle.
pub struct Crew {
    workers: AtomicUsize,
    /// How many are to have work at the same time.
    most: AtomicUsize,
    queue: Mutex<Queue>,
    arrived: Condvar,
    hungry: AtomicUsize,
    queued: AtomicUsize,
}

impl Crew {
    pub fn new(workers: usize) -> Self {
        Self {
            workers: AtomicUsize::new(workers),
            most: AtomicUsize::new(workers),
            queue: Mutex::new(Queue {
                tasks: VecDeque::new(),
                idle: workers, // they are still to come
                is_over: false,
            }),
            arrived: Condvar::new(),
            hungry: AtomicUsize::new(workers),
            queued: AtomicUsize::new(0),
        }
    }

    pub fn workers(&self) -> usize {
        self.workers.load(Relaxed)
    }

    /// One of them could not be started.
    pub fn lose_worker(&self) {
        let mut queue = self.queue.lock().expect("no worker panics");
        self.workers.fetch_sub(1, Relaxed);
        queue.idle -= 1;
        self.hungry.store(queue.idle, Relaxed);
        drop(queue);
        self.arrived.notify_all();
    }

    /// Lets nobody take anything any more.
    pub fn end(&self) {
        self.queue.lock().expect("no worker panics").is_over = true;
        self.arrived.notify_all();
    }

    /// Lets so many have work at the same time; who has some already keeps it.
    pub fn limit(&self, most: usize) {
        self.most.store(most, Relaxed);
    }

    /// How many have work.
    pub fn busy(&self) -> usize {
        self.workers().saturating_sub(self.hungry.load(Relaxed))
    }

    /// Whether somebody waits who may have work, and for whom nothing is there yet.
    #[inline]
    pub fn wants_work(&self) -> bool {
        let queued = self.queued.load(Relaxed);
        self.hungry.load(Relaxed) > queued && self.busy() + queued < self.most.load(Relaxed)
    }

    /// Whether more have work than may have some now.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        self.busy() > self.most.load(Relaxed)
    }

    /// Tasks that nobody has taken yet.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.queued.load(Relaxed)
    }

    pub fn give(&self, task: Task) {
        let mut queue = self.queue.lock().expect("no worker panics");
        queue.tasks.push_back(task);
        self.queued.store(queue.tasks.len(), Relaxed);
        drop(queue);
        self.arrived.notify_one();
    }

    /// Returns a task that is there already.
    pub fn take_now(&self) -> Option<Task> {
        if self.queued.load(Relaxed) == 0 {
            return None;
        }
        let mut queue = self.queue.lock().expect("no worker panics");
        if queue.is_over {
            return None;
        }
        let task = queue.tasks.pop_front();
        self.queued.store(queue.tasks.len(), Relaxed);
        task
    }

    /// Whoever took a task has done it.
    pub fn finish(&self) {
        let mut queue = self.queue.lock().expect("no worker panics");
        queue.idle += 1;
        self.hungry.store(queue.idle, Relaxed);
    }

    /// Waits for a task; `None` when there will be none any more.
    pub fn take(&self) -> Option<Task> {
        let mut queue = self.queue.lock().expect("no worker panics");
        loop {
            if queue.is_over {
                return None;
            }
            if let Some(task) = queue.tasks.pop_front() {
                queue.idle -= 1;
                self.hungry.store(queue.idle, Relaxed);
                self.queued.store(queue.tasks.len(), Relaxed);
                return Some(task);
            }
            if queue.idle == self.workers() {
                queue.is_over = true;
                self.arrived.notify_all();
                return None;
            }
            queue = self.arrived.wait(queue).expect("no worker panics");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_when_all_who_could_be_started_have_nothing_to_do() {
        let crew = Crew::new(2);
        crew.lose_worker();
        assert_eq!((crew.workers(), crew.busy()), (1, 0));
        assert!(crew.take().is_none());
    }

    #[test]
    fn nobody_wants_work_where_no_more_may_have_some() {
        let crew = Crew::new(2);
        assert!(crew.wants_work());
        crew.limit(0);
        assert!(!crew.wants_work());
    }
}
