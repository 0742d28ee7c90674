//! Work sharing: pending directories and names for idle workers.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Instant;

use rustix::fd::AsFd;

use super::deferred_evict::EvictHelper;
use super::dir_stack::DirStack;
use super::names::NameBatch;
use super::work_queue::Task;
use super::worker::Worker;

/// Names of one directory that one task contains.
const SHARED_NAMES: usize = 512;

/// The same during a trial, whose next window needs the task to be finished soon.
const TRIAL_SHARED_NAMES: usize = 64;

/// Queued parts of a directory per worker. Each of them has a descriptor.
const MAX_QUEUED_PER_WORKER: usize = 2;

/// Deeper directories are not shared, because a `SharedDir` takes more memory than a level.
const MAX_SHARED_DEPTH: usize = 4_096;

impl Worker<'_> {
    /// Shares half of the highest pending directories if a worker is idle.
    pub(super) fn share_subdirs(&mut self, stack: &mut DirStack) {
        if !self.context.queue.has_idle_worker() {
            return;
        }
        let last = stack.levels.len() - 1;
        while stack.first_pending < last && stack.levels[stack.first_pending].pending == 0 {
            stack.first_pending += 1;
        }
        let index = stack.first_pending;
        let pending = stack.levels[index].pending;
        // The last pending directory stays: sharing it would only move the work to another worker.
        let shared = if index == last {
            pending / 2
        } else {
            pending.div_ceil(2)
        };
        if shared == 0 || stack.depth(index) > MAX_SHARED_DEPTH {
            return;
        }
        let Some(descriptor) = &stack.levels[index].descriptor else {
            return;
        };
        let Ok(descriptor) = self.calls.duplicate(descriptor.as_fd()) else {
            return; // without a descriptor the directories wait for this worker
        };
        let from = stack.levels[index].first_name;
        let to = (0..shared).fold(from, |at, _| stack.names.next_after(at));
        let names = stack.names.copy(from, to);
        let level = &mut stack.levels[index];
        level.first_name = to;
        level.pending -= shared;
        let directory = Arc::clone(stack.share(index));
        directory.add_pending();
        self.context
            .queue
            .push(Task::Subdirs(directory, descriptor, names, shared));
    }

    /// Aborts a trial whose directory is not the current one any more.
    pub(super) fn abort_foreign_trial(&mut self, stack: &DirStack) {
        if let Some((directory, _)) = &self.trial {
            let current = stack.shared.get(stack.levels.len() - 1);
            if !current.is_some_and(|current| Arc::ptr_eq(current, directory)) {
                self.trial = None;
            }
        }
    }

    /// Shares the last names of the current directory with an idle worker if that is faster here, or
    /// queues an evict helper for all of them.
    ///
    /// Returns the end of the names that are left for this worker.
    pub(super) fn share_names(
        &mut self,
        stack: &mut DirStack,
        batch: &Arc<NameBatch>,
        begin: usize,
        end: usize,
        evict_helper: &mut EvictHelper,
    ) -> usize {
        if self.context.queue.is_over_limit() {
            *evict_helper = EvictHelper::none();
        }
        let workers = self.context.queue.workers();
        let index = stack.levels.len() - 1;
        if workers < 2 || end - begin <= 2 * SHARED_NAMES || stack.depth(index) > MAX_SHARED_DEPTH {
            return end;
        }
        let shared = stack
            .shared
            .get(index)
            .map_or(0, |directory| directory.pending_parts());
        if shared == 0 && !self.context.queue.has_idle_worker() {
            return end;
        }
        let splitting = &self.context.splitting;
        if self.trial.is_none() && splitting.is_trial_due() {
            let directory = Arc::clone(stack.share(index));
            let removed = directory.removed.load(Relaxed);
            let trial = splitting.start_trial(Instant::now(), removed);
            self.trial = Some((directory, trial));
        }
        let mut is_splitting = splitting.is_worthwhile();
        if let Some((directory, trial)) = &mut self.trial {
            let removed = directory.removed.load(Relaxed);
            if trial.update(Instant::now(), removed, shared > 0) {
                is_splitting = splitting.is_worthwhile();
                self.trial = None;
            } else {
                is_splitting = trial.is_splitting();
            }
        }
        if stack.file_system.benefits_from_deferred_evict() {
            if !is_splitting {
                *evict_helper = EvictHelper::none();
            } else if shared == 0 && self.remover.is_unrestricted() {
                self.request_evict_helper(stack, batch, begin, evict_helper);
            }
            return end;
        }
        let queued = self.context.queue.queued_tasks();
        if !is_splitting || shared >= 2 * (workers - 1) || queued >= MAX_QUEUED_PER_WORKER * workers
        {
            return end;
        }
        let Ok(descriptor) = self.calls.duplicate(stack.descriptor()) else {
            return end;
        };
        let directory = Arc::clone(stack.share(index));
        directory.add_pending();
        let is_trial = self.trial.is_some();
        let rest = end
            - if is_trial {
                TRIAL_SHARED_NAMES
            } else {
                SHARED_NAMES
            };
        self.context.queue.push(Task::Names(
            directory,
            descriptor,
            Arc::clone(batch),
            rest..end,
        ));
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delete::remover::Tally;
    use crate::delete::{targets, Arguments, Context};
    use crate::syscalls::Syscalls;

    #[test]
    fn trial_is_aborted_when_worker_enters_another_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().canonicalize().unwrap().join("target");
        std::fs::create_dir_all(target.join("child")).unwrap();
        let arguments = Arguments {
            targets: vec![target.into()],
            ..Arguments::default()
        };
        let context = Context::new(&arguments, 2);
        let tally = Tally::new(Syscalls::new(false));
        let Ok(Task::Tree(directory, descriptor)) = targets::open(&arguments, 0, &tally.calls)
        else {
            panic!("a target is one task");
        };
        let mut worker = Worker::new(&context, &tally, 4);
        let mut stack = DirStack::new(Arc::clone(&directory), descriptor, 4);
        worker.trial = Some((directory, context.splitting.start_trial(Instant::now(), 0)));
        worker.abort_foreign_trial(&stack);
        assert!(context.splitting.has_running_trial());
        stack.add_name(c"child");
        let at = stack.take_name();
        let child = stack.open_child(at, &tally.calls).unwrap();
        stack.push(at, child, &tally.calls).unwrap();
        worker.abort_foreign_trial(&stack);
        assert!(!context.splitting.has_running_trial());
    }
}
