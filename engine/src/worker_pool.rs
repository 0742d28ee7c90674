//! The threads of the workers, which are started as the concurrency allows more of them.

use std::io;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread::{Builder, Scope};
use std::time::{Duration, Instant};

use crate::work_queue::WorkQueue;

/// Threads that all do the same work, and end when the queue is closed.
pub struct WorkerPool<'scope, 'env, Task, Work> {
    scope: &'scope Scope<'scope, 'env>,
    stack_bytes: usize,
    queue: &'env WorkQueue<Task>,
    work: &'env Work,
    started: usize,
    ended: usize,
    sender: Sender<()>,
    receiver: Receiver<()>,
}

/// Reports the end of a worker, also of one that panics in a test.
struct Ended(Sender<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.send(()); // the receiver waits for all
    }
}

impl<'scope, 'env, Task, Work> WorkerPool<'scope, 'env, Task, Work>
where
    Task: Send,
    Work: Fn(usize) + Sync,
{
    /// `work` gets the number of its worker.
    pub fn new(
        scope: &'scope Scope<'scope, 'env>,
        stack_bytes: usize,
        queue: &'env WorkQueue<Task>,
        work: &'env Work,
    ) -> Self {
        let (sender, receiver) = channel();
        Self {
            scope,
            stack_bytes,
            queue,
            work,
            started: 0,
            ended: 0,
            sender,
            receiver,
        }
    }

    /// Returns the number of workers that were started.
    pub fn started(&self) -> usize {
        self.started
    }

    /// Starts workers up to a number, until one cannot be started. None ends before the queue closes.
    pub fn grow(&mut self, workers: usize) -> io::Result<()> {
        while self.started < workers && self.ended == 0 {
            let (number, work, sender) = (self.started, self.work, self.sender.clone());
            self.queue.add_worker(); // first, so that the queue does not close without it
            let builder = Builder::new().stack_size(self.stack_bytes);
            let thread = builder.spawn_scoped(self.scope, move || {
                let _ended = Ended(sender);
                work(number);
            });
            if let Err(error) = thread {
                self.queue.remove_worker();
                return Err(error);
            }
            self.started += 1;
        }
        Ok(())
    }

    /// Waits for the end of all workers; returns whether they have ended.
    pub fn wait(&mut self, timeout: Duration) -> bool {
        let began = Instant::now();
        while self.ended < self.started {
            let left = timeout.saturating_sub(began.elapsed());
            if self.receiver.recv_timeout(left).is_err() {
                return false;
            }
            self.ended += 1;
        }
        true
    }
}
