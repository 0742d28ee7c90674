//! Removing directory trees with several threads.
//!
//! Workers go down depth first, each on its own; one that has nothing to do is given the half of
//! the directories that wait highest up in the tree of another one, or names of a directory where
//! that is faster. Whoever ends the last work in a directory removes it.

mod ab_test;
mod arguments;
mod ascend;
mod contention;
mod control;
mod deferred_evict;
mod dir_splitting;
mod dir_stack;
mod file_systems;
mod names;
mod output;
mod remover;
mod shared_dir;
mod stepwise_truncate;
mod targets;
mod thread_tuner;
mod throttle;
mod work_queue;
mod work_sharing;
mod worker;

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{setrlimit, Resource, Rlimit};

pub use arguments::Arguments;
use contention::SchedCounts;
use dir_splitting::DirSplitting;
use file_systems::FileSystem;
use output::{counts, removed, say, tell, Failures};
use remover::Tally;
use targets::Refusal;
use thread_tuner::{Observation, ThreadTuner};
use throttle::Throttle;
use work_queue::{Task, WorkQueue};
use worker::Worker;

use crate::descriptors::{descriptor_limits, make_room_for};
use crate::filters::Filters;
use crate::quoting::{quoted, reason};
use crate::sys::ignore_broken_leases;
use crate::syscalls::Calls;

/// As many as the survey's; what more would gain was not measured.
const MOST_THREADS: usize = 8;

/// As a shell says of a command that Ctrl+C has ended.
const CANCELLED: u8 = 130;

/// As tui-fs ends when a safety rule refuses what is asked.
const REFUSED: u8 = 3;

/// Any value but the empty one turns every deletion off, as in tui-fs.
const READ_ONLY_VARIABLE: &str = "TUI_FS_READ_ONLY";

const EVERY: Duration = Duration::from_millis(250);

/// What a worker may need who lets go of as many directories, each inside the next, as are given
/// away: of each a few words (see `work_sharing::MAX_SHARED_DEPTH`).
const STACK_BYTES: usize = 512 << 10;

/// Descriptors all walks together may keep, if the process may have twice as many.
const MOST_DESCRIPTORS: u64 = 2_048;

/// What a worker needs at least; a limit on descriptors is one on workers.
const DESCRIPTORS_OF_EACH: u64 = 8;

/// What all workers share.
struct Run {
    queue: WorkQueue,
    throttle: Throttle,
    tuner: Mutex<ThreadTuner>,
    splitting: DirSplitting,
    filters: Filters,
    failures: Failures,
    bytes_in_memory: Arc<AtomicUsize>,
    /// Held while a command is obeyed and answered.
    answering: Mutex<()>,
    /// Something but a command has ended it.
    is_broken: AtomicBool,
}

impl Run {
    fn new(asked: &Arguments, workers: usize) -> Self {
        Self {
            queue: WorkQueue::new(workers),
            throttle: Throttle::new(workers, asked.per_s, asked.is_gentle),
            tuner: Mutex::new(ThreadTuner::new(workers, asked.threads)),
            splitting: DirSplitting::new(),
            filters: asked.filters.clone(),
            failures: Failures::default(),
            bytes_in_memory: Arc::default(),
            answering: Mutex::default(),
            is_broken: AtomicBool::new(false),
        }
    }

    fn cancel(&self) {
        self.throttle.cancel();
        self.queue.close();
    }

    /// Changes how many are at work, and lets that many work.
    fn update_tuner(&self, change: impl FnOnce(&mut ThreadTuner)) -> Duration {
        let mut tuner = self.tuner.lock().expect("nobody panics");
        let before = tuner.max_active();
        change(&mut tuner);
        if tuner.max_active() != before {
            self.throttle.set_max_active(tuner.max_active());
            self.queue.set_max_busy(tuner.max_active());
        }
        let is_disturbed =
            tuner.has_running_trial() || tuner.max_active() < 2 || self.throttle.is_limiting();
        self.splitting.set_suspended(is_disturbed);
        tuner.poll_interval()
    }

    fn break_off(&self, sentence: &str) {
        self.failures.say(sentence);
        self.is_broken.store(true, Relaxed);
        self.cancel();
    }
}

/// Does what is asked, and tells it.
pub fn run(asked: Arguments) -> ExitCode {
    if std::env::var_os(READ_ONLY_VARIABLE).is_some_and(|value| !value.is_empty()) {
        say(&format!(
            "the environment variable {READ_ONLY_VARIABLE} turns deleting off; nothing was deleted"
        ));
        return ExitCode::from(REFUSED);
    }
    ignore_broken_leases();
    let descriptors = allowed_descriptors(asked.targets.len() as u64);
    make_room_for(descriptors);
    let workers = asked.threads.unwrap_or_else(processors);
    let workers = workers.min(most_workers(descriptors));
    let run = Arc::new(Run::new(&asked, workers));
    let tallies: Vec<Tally> = (0..workers)
        .map(|_| Tally::new(Calls::new(asked.without_openat2)))
        .collect();
    let tasks = match open_all(&asked, &tallies[0].calls, &run.failures) {
        Ok(tasks) => tasks,
        Err(code) => return code,
    };
    let common = |property: fn(FileSystem) -> Option<bool>| common_property(&tasks, property);
    run.splitting
        .set_prior(common(FileSystem::scales_within_dir));
    run.update_tuner(|tuner| tuner.set_prior(common(FileSystem::scales_across_dirs)));
    for task in tasks {
        run.queue.push(task);
    }
    let max_open = (descriptors as usize / 2 / workers).max(4);
    work(&run, &tallies, max_open, asked.every.unwrap_or(EVERY));
    if run.throttle.is_cancelled() && !run.is_broken.load(Relaxed) {
        ExitCode::from(CANCELLED)
    } else if run.failures.number() > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Returns what is known of the file systems of all targets; `None` where they differ.
fn common_property(tasks: &[Task], property: fn(FileSystem) -> Option<bool>) -> Option<bool> {
    all_equal(tasks.iter().map(|task| match task {
        Task::Tree(target, _) => property(target.target().file_system),
        _ => None, // a target is begun as a whole
    }))
}

fn all_equal(mut answers: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let first = answers.next()?;
    answers.all(|other| other == first).then_some(first)?
}

/// Opens the targets: none is begun before all are known to be what was confirmed. Returns the exit
/// code where one is another, or the root of a mount; one that cannot be opened spares the others.
fn open_all(asked: &Arguments, calls: &Calls, failures: &Failures) -> Result<Vec<Task>, ExitCode> {
    let mut tasks = Vec::new();
    for (number, target) in asked.targets.iter().enumerate() {
        let shown = quoted(target.as_bytes());
        match targets::open(asked, number, calls) {
            Ok(task) => tasks.push(task),
            Err(Refusal::Failed(why)) => {
                failures.say(&format!("cannot open {shown}: {}", reason(why)));
            }
            Err(Refusal::Another) => {
                say(&format!("{shown} is not the directory that was confirmed"));
                return Err(ExitCode::FAILURE);
            }
            Err(Refusal::MountRoot) => {
                say(&format!(
                    "{shown} is the root of a mount; unmount it first; nothing was deleted"
                ));
                return Err(ExitCode::from(REFUSED));
            }
        }
    }
    Ok(tasks)
}

/// Lets all workers work to their end, obeys, and tells the counts meanwhile.
fn work(run: &Arc<Run>, tallies: &[Tally], max_open: usize, every: Duration) {
    std::thread::scope(|threads| {
        let (working, ended) = channel::<()>();
        for (number, tally) in tallies.iter().enumerate() {
            let (run, working) = (&**run, working.clone());
            let work = move || {
                Worker::new(run, tally, max_open).work();
                drop(working);
            };
            let started = std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(threads, work);
            if let Err(why) = started {
                run.queue.remove_worker();
                run.update_tuner(ThreadTuner::remove_worker);
                if number == 0 {
                    run.break_off(&format!("no thread can be started: {why}"));
                }
            }
        }
        drop(working);
        let listener = Arc::clone(run);
        // Nobody waits for it: it reads until the program ends.
        if let Err(why) = std::thread::Builder::new().spawn(move || control::listen(&listener)) {
            say(&format!("commands cannot be read: {why}"));
        }
        let (mut told_at, mut pause) = (Instant::now(), Duration::ZERO);
        loop {
            let pause_now = pause.min(every.saturating_sub(told_at.elapsed()));
            let is_over = ended.recv_timeout(pause_now) == Err(RecvTimeoutError::Disconnected);
            let mut number = 0;
            pause = run.update_tuner(|tuner| {
                tuner.poll(Observation {
                    now: Instant::now(),
                    removed: removed(tallies),
                    sched_counts: SchedCounts::read(),
                    busy_workers: run.queue.busy_workers(),
                    is_disturbed: run.throttle.is_limiting() || run.splitting.has_running_trial(),
                });
                number = tuner.max_active();
            });
            if !is_over && told_at.elapsed() < every {
                continue;
            }
            told_at = Instant::now();
            let line = counts(tallies, number, run.splitting.is_worthwhile());
            if let (Err(why), false) = (tell(&line), run.is_broken.load(Relaxed)) {
                // Without a reader nobody could see or stop what is done here.
                run.break_off(&format!("the counts cannot be told: {why}"));
            }
            if is_over {
                break;
            }
        }
    });
    drop(run.answering.lock());
}

/// How many workers may share so many descriptors: each needs some for its stack, some more for what
/// it gives away, and one for what it was given.
fn most_workers(descriptors: u64) -> usize {
    (descriptors / DESCRIPTORS_OF_EACH).clamp(1, 256) as usize
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |number| number.get().min(MOST_THREADS))
}

/// Allows as many descriptors as there may be; returns how many walks may keep.
fn allowed_descriptors(targets: u64) -> u64 {
    let (mut current, maximum) = descriptor_limits();
    let wanted = 2 * MOST_DESCRIPTORS + 2 * targets;
    let most = maximum.min(wanted);
    if current < most {
        let raised = Rlimit {
            current: Some(most),
            maximum: (maximum != u64::MAX).then_some(maximum),
        };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            current = most;
        }
    }
    current
        .saturating_sub(2 * targets)
        .min(2 * MOST_DESCRIPTORS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_are_for_few_workers() {
        assert_eq!(most_workers(0), 1);
        assert_eq!(most_workers(240), 30);
        assert_eq!(most_workers(u64::MAX), 256);
    }

    #[test]
    fn no_directory_is_split_for_a_trial_where_something_else_decides() {
        let run = Run::new(&Arguments::default(), 2);
        let is_tried_after = |change: &dyn Fn(&mut ThreadTuner)| {
            run.update_tuner(change);
            run.splitting.is_trial_due()
        };
        assert!(is_tried_after(&|_| ()));
        assert!(!is_tried_after(&|tuner| tuner.request(Some(1))));
        assert!(is_tried_after(&|tuner| tuner.request(Some(2))));
        run.throttle.set_paused(true);
        assert!(!is_tried_after(&|_| ()));
        run.throttle.set_paused(false);
        assert!(is_tried_after(&|_| ()));
        run.throttle.set_rate(Some(1));
        assert!(!is_tried_after(&|_| ()));
        run.throttle.set_rate(None);
        let observation = Observation {
            now: Instant::now(),
            removed: 0,
            sched_counts: SchedCounts::default(),
            busy_workers: 2,
            is_disturbed: false,
        };
        assert!(!is_tried_after(&|tuner| {
            tuner.request(None);
            tuner.poll(observation); // the first look in a while knows no rate
            tuner.poll(observation);
        }));
        assert!(run.tuner.lock().unwrap().has_running_trial());
    }

    #[test]
    fn several_targets_must_agree() {
        let (yes, no) = (Some(true), Some(false));
        for (answers, all) in [
            (vec![], None),
            (vec![no], no),
            (vec![yes, yes], yes),
            (vec![yes, no], None),
            (vec![None, yes], None),
            (vec![no, None], None),
        ] {
            assert_eq!(all_equal(answers.into_iter()), all);
        }
    }
}
