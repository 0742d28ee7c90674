//! The shared queue of pending tasks, its workers and the count of idle ones.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread::{Builder, Scope};
use std::time::Duration;

struct State<T> {
    tasks: VecDeque<T>,
    is_closed: bool,
}

/// A blocking queue. It closes when all workers are idle. A worker is idle until it pops a task and
/// after `mark_idle`.
pub struct WorkQueue<T> {
    /// Limit of busy workers. A worker that is busy already stays so.
    max_busy: AtomicUsize,
    state: Mutex<State<T>>,
    task_pushed: Condvar,
    ended: Condvar,
    /// Numbers that change with the lock, and are also read without it.
    workers: AtomicUsize,
    idle_workers: AtomicUsize,
    queued: AtomicUsize,
}

/// A worker of a queue, until it is dropped.
pub struct Registration<'queue, T>(&'queue WorkQueue<T>);

impl<T> Drop for Registration<'_, T> {
    fn drop(&mut self) {
        let _state = self.0.state.lock(); // poisoned if the worker panics in a test
        self.0.workers.fetch_sub(1, Relaxed);
        self.0.ended.notify_all();
    }
}

impl<T> WorkQueue<T> {
    /// Returns a queue without workers.
    pub fn new() -> Self {
        Self {
            max_busy: AtomicUsize::new(usize::MAX),
            state: Mutex::new(State {
                tasks: VecDeque::new(),
                is_closed: false,
            }),
            task_pushed: Condvar::new(),
            ended: Condvar::new(),
            workers: AtomicUsize::new(0),
            idle_workers: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().expect("no worker panics")
    }

    /// Starts the threads of workers up to a number, until one cannot be started. They end when the queue
    /// is closed. `work` gets the number of its worker.
    pub fn start_workers<'scope, 'env, Work: Fn(usize) + Sync>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        stack_bytes: usize,
        work: &'env Work,
        started: &mut usize,
        workers: usize,
    ) -> io::Result<()>
    where
        T: Send,
    {
        while *started < workers {
            let number = *started;
            let builder = Builder::new().stack_size(stack_bytes);
            builder.spawn_scoped(scope, move || {
                let _worker = self.register();
                work(number);
            })?;
            *started += 1;
        }
        Ok(())
    }

    /// Adds the calling thread as an idle worker.
    pub fn register(&self) -> Registration<'_, T> {
        let _state = self.lock();
        self.workers.fetch_add(1, Relaxed);
        self.idle_workers.fetch_add(1, Relaxed);
        Registration(self)
    }

    pub fn workers(&self) -> usize {
        self.workers.load(Relaxed)
    }

    /// Makes `pop` and `try_pop` return `None` from now on.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.task_pushed.notify_all();
    }

    /// Waits until the queue is closed and no worker is left; returns whether that is so.
    pub fn wait_for_end(&self, timeout: Duration) -> bool {
        let is_running = |state: &mut State<T>| !state.is_closed || self.workers() > 0;
        let waited = (self.ended).wait_timeout_while(self.lock(), timeout, is_running);
        !waited.expect("no worker panics").1.timed_out()
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
        let mut state = self.lock();
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
        let mut state = self.lock();
        if state.is_closed {
            return None;
        }
        let task = state.tasks.pop_front();
        self.queued.store(state.tasks.len(), Relaxed);
        task
    }

    /// Marks the calling worker as idle.
    pub fn mark_idle(&self) {
        let _state = self.lock();
        self.idle_workers.fetch_add(1, Relaxed);
    }

    /// Waits for a task; returns `None` once the queue is closed.
    pub fn pop(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.is_closed {
                return None;
            }
            if let Some(task) = state.tasks.pop_front() {
                self.idle_workers.fetch_sub(1, Relaxed);
                self.queued.store(state.tasks.len(), Relaxed);
                return Some(task);
            }
            if self.idle_workers.load(Relaxed) == self.workers() {
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

    #[test]
    fn queue_closes_when_all_workers_are_idle_and_ends_without_them() {
        let queue = WorkQueue::<()>::new();
        let worker = queue.register();
        assert!(!queue.wait_for_end(Duration::ZERO));
        assert!(queue.pop().is_none());
        assert!(!queue.wait_for_end(Duration::ZERO));
        drop(worker);
        assert!(queue.wait_for_end(Duration::MAX));
    }

    #[test]
    fn waiting_worker_gets_a_task_or_the_end() {
        let queue = WorkQueue::new();
        let _workers = [queue.register(), queue.register()];
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
        let queue = WorkQueue::<()>::new();
        let _worker = queue.register();
        assert!(queue.has_idle_worker());
        queue.set_max_busy(0);
        assert!(!queue.has_idle_worker());
    }
}
