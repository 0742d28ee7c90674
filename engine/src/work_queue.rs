//! The shared queue of pending tasks, and the count of idle workers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};

struct State<T> {
    tasks: VecDeque<T>,
    idle: usize,
    is_closed: bool,
}

/// A blocking queue. It closes when all workers are idle. A worker is idle until it pops a task and
/// after `mark_idle`.
pub struct WorkQueue<T> {
    workers: AtomicUsize,
    /// Limit of busy workers. A worker that is busy already stays so.
    max_busy: AtomicUsize,
    state: Mutex<State<T>>,
    task_pushed: Condvar,
    /// Copies of the state's numbers, to be read without the lock.
    idle_workers: AtomicUsize,
    queued: AtomicUsize,
}

impl<T> WorkQueue<T> {
    /// Returns a queue without workers.
    pub fn new() -> Self {
        Self {
            workers: AtomicUsize::new(0),
            max_busy: AtomicUsize::new(usize::MAX),
            state: Mutex::new(State {
                tasks: VecDeque::new(),
                idle: 0,
                is_closed: false,
            }),
            task_pushed: Condvar::new(),
            idle_workers: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
        }
    }

    /// Adds a worker, which is idle until its thread has started.
    pub fn add_worker(&self) {
        let mut state = self.state.lock().expect("no worker panics");
        self.workers.fetch_add(1, Relaxed);
        state.idle += 1;
        self.idle_workers.store(state.idle, Relaxed);
    }

    pub fn workers(&self) -> usize {
        self.workers.load(Relaxed)
    }

    /// Removes a worker whose thread could not be started.
    pub fn remove_worker(&self) {
        let mut state = self.state.lock().expect("no worker panics");
        self.workers.fetch_sub(1, Relaxed);
        state.idle -= 1;
        self.idle_workers.store(state.idle, Relaxed);
        drop(state);
        self.task_pushed.notify_all();
    }

    /// Makes `pop` and `try_pop` return `None` from now on.
    pub fn close(&self) {
        self.state.lock().expect("no worker panics").is_closed = true;
        self.task_pushed.notify_all();
    }

    pub fn set_max_busy(&self, max_busy: usize) {
        self.max_busy.store(max_busy, Relaxed);
    }

    pub fn busy_workers(&self) -> usize {
        self.workers()
            .saturating_sub(self.idle_workers.load(Relaxed))
    }

    /// Returns whether a worker below the limit is idle and no task is queued for it.
    #[inline]
    pub fn has_idle_worker(&self) -> bool {
        let queued = self.queued.load(Relaxed);
        self.idle_workers.load(Relaxed) > queued
            && self.busy_workers() + queued < self.max_busy.load(Relaxed)
    }

    /// Returns whether more workers are busy than the limit.
    #[inline]
    pub fn is_over_limit(&self) -> bool {
        self.busy_workers() > self.max_busy.load(Relaxed)
    }

    #[inline]
    pub fn queued_tasks(&self) -> usize {
        self.queued.load(Relaxed)
    }

    pub fn push(&self, task: T) {
        let mut state = self.state.lock().expect("no worker panics");
        state.tasks.push_back(task);
        self.queued.store(state.tasks.len(), Relaxed);
        drop(state);
        self.task_pushed.notify_one();
    }

    /// Returns a queued task without waiting.
    pub fn try_pop(&self) -> Option<T> {
        if self.queued.load(Relaxed) == 0 {
            return None;
        }
        let mut state = self.state.lock().expect("no worker panics");
        if state.is_closed {
            return None;
        }
        let task = state.tasks.pop_front();
        self.queued.store(state.tasks.len(), Relaxed);
        task
    }

    /// Marks the calling worker as idle.
    pub fn mark_idle(&self) {
        let mut state = self.state.lock().expect("no worker panics");
        state.idle += 1;
        self.idle_workers.store(state.idle, Relaxed);
    }

    /// Waits for a task; returns `None` once the queue is closed.
    pub fn pop(&self) -> Option<T> {
        let mut state = self.state.lock().expect("no worker panics");
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(task) = state.tasks.pop_front() {
                state.idle -= 1;
                self.idle_workers.store(state.idle, Relaxed);
                self.queued.store(state.tasks.len(), Relaxed);
                return Some(task);
            }
            if state.idle == self.workers() {
                state.is_closed = true;
                self.task_pushed.notify_all();
                return None;
            }
            state = self.task_pushed.wait(state).expect("no worker panics");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_with_workers<T>(workers: usize) -> WorkQueue<T> {
        let queue = WorkQueue::new();
        (0..workers).for_each(|_| queue.add_worker());
        queue
    }

    #[test]
    fn queue_closes_when_all_started_workers_are_idle() {
        let queue = queue_with_workers::<()>(2);
        queue.remove_worker();
        assert_eq!((queue.workers(), queue.busy_workers()), (1, 0));
        assert!(queue.pop().is_none());
    }

    #[test]
    fn waiting_worker_gets_a_task_or_the_end() {
        let queue = queue_with_workers(2);
        queue.push(1);
        assert_eq!(queue.pop(), Some(1));
        std::thread::scope(|threads| {
            let waiting = threads.spawn(|| (queue.pop(), queue.mark_idle(), queue.pop()));
            queue.push(2);
            while queue.queued_tasks() > 0 {
                std::thread::yield_now();
            }
            queue.mark_idle();
            assert_eq!(queue.pop(), None);
            assert_eq!(waiting.join().unwrap(), (Some(2), (), None));
        });
    }

    #[test]
    fn idle_worker_over_limit_gets_no_task() {
        let queue = queue_with_workers::<()>(2);
        assert!(queue.has_idle_worker());
        queue.set_max_busy(0);
        assert!(!queue.has_idle_worker());
    }
}
