//! Giving work away to whoever has nothing to do.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Instant;

use rustix::fd::AsFd;

use super::deferred_evict::EvictHelper;
use super::dir_stack::Walk;
use super::names::NameBatch;
use super::work_queue::Task;
use super::worker::Worker;

/// Names of one directory that several workers remove are given away so many at once.
const SLICE: usize = 512;

/// While it is tried whether that pays: what was given must not be long under way afterwards.
const TRIED_SLICE: usize = 64;

/// Each part that waits has a descriptor.
const MOST_WAITING: usize = 2;

/// Levels below a target from which on nothing is given away: what others know of a directory
/// takes more room than a level of a walk.
const DEEPEST_GIVEN: usize = 4_096;

impl Worker<'_> {
    /// Gives directories that wait to whoever has nothing to do: the half of those highest up.
    pub(super) fn give_directories(&mut self, walk: &mut Walk) {
        if !self.run.queue.has_idle_worker() {
            return;
        }
        let last = walk.levels.len() - 1;
        while walk.first_waiting < last && walk.levels[walk.first_waiting].waiting == 0 {
            walk.first_waiting += 1;
        }
        let index = walk.first_waiting;
        let waiting = walk.levels[index].waiting;
        // The last of all work is not worth giving away: another one would be without then.
        let given = if index == last {
            waiting / 2
        } else {
            waiting.div_ceil(2)
        };
        if given == 0 || walk.depth(index) > DEEPEST_GIVEN {
            return;
        }
        let Some(descriptor) = &walk.levels[index].descriptor else {
            return;
        };
        let Ok(descriptor) = self.calls.duplicate(descriptor.as_fd()) else {
            return; // no descriptor is left for it: it waits for this worker
        };
        let from = walk.levels[index].first;
        let to = (0..given).fold(from, |at, _| walk.names.behind(at));
        let names = walk.names.copy(from, to);
        let level = &mut walk.levels[index];
        level.first = to;
        level.waiting -= given;
        let directory = Arc::clone(walk.share(index));
        directory.begin();
        self.run
            .queue
            .push(Task::Subdirs(directory, descriptor, names, given));
    }

    /// Ends a trial that was not finished in its directory, where it has gone elsewhere.
    pub(super) fn forget_other_trial(&mut self, walk: &Walk) {
        if let Some((directory, _)) = &self.trial {
            let here = walk.shared.get(walk.levels.len() - 1);
            if !here.is_some_and(|here| Arc::ptr_eq(here, directory)) {
                self.trial = None;
            }
        }
    }

    /// Gives the last of the names away if somebody has nothing to do and two are faster here; or
    /// has them all kept, where one removes and the other one frees.
    ///
    /// Returns where those end that are left.
    pub(super) fn give_names(
        &mut self,
        walk: &mut Walk,
        batch: &Arc<NameBatch>,
        begin: usize,
        end: usize,
        evict_helper: &mut EvictHelper,
    ) -> usize {
        if self.run.queue.is_over_limit() {
            *evict_helper = EvictHelper::none();
        }
        let workers = self.run.queue.workers();
        let index = walk.levels.len() - 1;
        if workers < 2 || end - begin <= 2 * SLICE || walk.depth(index) > DEEPEST_GIVEN {
            return end;
        }
        let given = walk.shared.get(index).map_or(0, |one| one.parts_given());
        if given == 0 && !self.run.queue.has_idle_worker() {
            return end;
        }
        let splitting = &self.run.splitting;
        if self.trial.is_none() && splitting.is_trial_due() {
            let directory = Arc::clone(walk.share(index));
            let removed = directory.removed.load(Relaxed);
            let trial = splitting.start_trial(Instant::now(), removed);
            self.trial = Some((directory, trial));
        }
        let mut splits = splitting.is_worthwhile();
        if let Some((directory, trial)) = &mut self.trial {
            let removed = directory.removed.load(Relaxed);
            if trial.update(Instant::now(), removed, given > 0) {
                splits = splitting.is_worthwhile();
                self.trial = None;
            } else {
                splits = trial.is_splitting();
            }
        }
        if walk.file_system.benefits_from_deferred_evict() {
            if !splits {
                *evict_helper = EvictHelper::none();
            } else if given == 0 && self.remover.is_unrestricted() {
                self.request_evict_helper(walk, batch, begin, evict_helper);
            }
            return end;
        }
        let waiting = self.run.queue.queued_tasks();
        if !splits || given >= 2 * (workers - 1) || waiting >= MOST_WAITING * workers {
            return end;
        }
        let Ok(descriptor) = self.calls.duplicate(walk.descriptor()) else {
            return end;
        };
        let directory = Arc::clone(walk.share(index));
        directory.begin();
        let is_trial = self.trial.is_some();
        let rest = end - if is_trial { TRIED_SLICE } else { SLICE };
        self.run.queue.push(Task::Names(
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
    use crate::delete::{targets, Arguments, Run};
    use crate::syscalls::Calls;

    #[test]
    fn a_trial_ends_when_its_worker_goes_to_another_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().canonicalize().unwrap().join("target");
        std::fs::create_dir_all(target.join("below")).unwrap();
        let asked = Arguments {
            targets: vec![target.into()],
            ..Arguments::default()
        };
        let run = Run::new(&asked, 2);
        let tally = Tally::new(Calls::new(false));
        let Ok(Task::Tree(directory, descriptor)) = targets::open(&asked, 0, &tally.calls) else {
            panic!("a target is one task");
        };
        let mut worker = Worker::new(&run, &tally, 4);
        let mut walk = Walk::begin(Arc::clone(&directory), descriptor, 4);
        worker.trial = Some((directory, run.splitting.start_trial(Instant::now(), 0)));
        worker.forget_other_trial(&walk);
        assert!(run.splitting.has_running_trial());
        walk.add_name(c"below");
        let at = walk.next_name();
        let below = walk.open(at, &tally.calls).unwrap();
        walk.enter(at, below, &tally.calls).unwrap();
        worker.forget_other_trial(&walk);
        assert!(!run.splitting.has_running_trial());
    }
}
