//! Work sharing: pending directories and names for idle workers.

use std::sync::Arc;

use rustix::fd::AsFd;

use super::deferred_evict::EvictHelper;
use super::dir_stack::DirStack;
use super::names::NameBatch;
use super::work_queue::Task;
use super::worker::Worker;

/// Names of one directory that one task contains.
pub const SHARED_NAMES: usize = 512;

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
        if stack.file_system.benefits_from_deferred_evict {
            if shared == 0 && self.remover.is_unrestricted() {
                self.request_evict_helper(stack, batch, begin, evict_helper);
            }
            return end;
        }
        let queued = self.context.queue.queued_tasks();
        if !stack.file_system.scales_within_dir
            || shared >= 2 * (workers - 1)
            || queued >= MAX_QUEUED_PER_WORKER * workers
        {
            return end;
        }
        let Ok(descriptor) = self.calls.duplicate(stack.descriptor()) else {
            return end;
        };
        let directory = Arc::clone(stack.share(index));
        directory.add_pending();
        let rest = end - SHARED_NAMES;
        self.context.queue.push(Task::Names(
            directory,
            descriptor,
            Arc::clone(batch),
            rest..end,
        ));
        rest
    }
}
