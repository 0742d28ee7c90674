//! Deletes directory trees with several threads.
//!
//! Each worker walks depth first. An idle worker gets half of the highest pending directories of
//! another worker, or names of one directory where that is faster. The worker that finishes the last
//! part of a directory removes it.

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
use output::{emit, format_counts, total_removed, warn, Failures};
use remover::Tally;
use targets::TargetError;
use thread_tuner::{Observation, ThreadTuner};
use throttle::Throttle;
use work_queue::{Task, WorkQueue};
use worker::Worker;

use crate::descriptors::{descriptor_limits, grow_descriptor_table};
use crate::filters::Filters;
use crate::quoting::{quoted, reason};
use crate::sys::ignore_broken_leases;
use crate::syscalls::Syscalls;

/// Same as in the survey. The gain of more threads was not measured.
const MAX_THREADS: usize = 8;

/// The shell's status of a command that SIGINT has killed.
const EXIT_CANCELLED: u8 = 130;

/// The exit code of tui-fs after a refusal by a safety rule.
const EXIT_REFUSED: u8 = 3;

/// Any value but the empty one turns every deletion off, as in tui-fs.
const READ_ONLY_VARIABLE: &str = "TUI_FS_READ_ONLY";

const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// Enough for the recursive drop of a chain of `work_sharing::MAX_SHARED_DEPTH` shared directories.
const STACK_BYTES: usize = 512 << 10;

/// Descriptors of all directory stacks together, if the process may have twice as many.
const MAX_OPEN_DIRS: u64 = 2_048;

/// The limit of descriptors also limits the number of workers.
const MIN_FDS_PER_WORKER: u64 = 8;

/// The state that all workers share.
struct Context {
    queue: WorkQueue,
    throttle: Throttle,
    tuner: Mutex<ThreadTuner>,
    splitting: DirSplitting,
    filters: Filters,
    failures: Failures,
    /// Memory of the names that were read and not removed yet.
    name_bytes: Arc<AtomicUsize>,
    /// Locked while a command is handled and answered.
    answer_lock: Mutex<()>,
    /// An error, not a command, has cancelled the job.
    is_aborted: AtomicBool,
}

impl Context {
    fn new(arguments: &Arguments, workers: usize) -> Self {
        Self {
            queue: WorkQueue::new(workers),
            throttle: Throttle::new(workers, arguments.rate_per_s, arguments.is_gentle),
            tuner: Mutex::new(ThreadTuner::new(workers, arguments.threads)),
            splitting: DirSplitting::new(),
            filters: arguments.filters.clone(),
            failures: Failures::default(),
            name_bytes: Arc::default(),
            answer_lock: Mutex::default(),
            is_aborted: AtomicBool::new(false),
        }
    }

    fn cancel(&self) {
        self.throttle.cancel();
        self.queue.close();
    }

    /// Changes the tuner and applies its number of workers; returns the time until the next poll.
    fn update_tuner(&self, change: impl FnOnce(&mut ThreadTuner)) -> Duration {
        let mut tuner = self.tuner.lock().expect("no worker panics");
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

    fn abort(&self, message: &str) {
        self.failures.report_message(message);
        self.is_aborted.store(true, Relaxed);
        self.cancel();
    }
}

/// Deletes the targets, and reports the counts on standard output.
pub fn run(arguments: Arguments) -> ExitCode {
    if std::env::var_os(READ_ONLY_VARIABLE).is_some_and(|value| !value.is_empty()) {
        warn(&format!(
            "the environment variable {READ_ONLY_VARIABLE} turns deleting off; nothing was deleted"
        ));
        return ExitCode::from(EXIT_REFUSED);
    }
    ignore_broken_leases();
    let descriptors = raise_descriptor_limit(arguments.targets.len() as u64);
    grow_descriptor_table(descriptors);
    let workers = arguments.threads.unwrap_or_else(default_workers);
    let workers = workers.min(max_workers(descriptors));
    let context = Arc::new(Context::new(&arguments, workers));
    let tallies: Vec<Tally> = (0..workers)
        .map(|_| Tally::new(Syscalls::new(arguments.without_openat2)))
        .collect();
    let tasks = match open_targets(&arguments, &tallies[0].calls, &context.failures) {
        Ok(tasks) => tasks,
        Err(code) => return code,
    };
    let common = |property: fn(FileSystem) -> Option<bool>| common_property(&tasks, property);
    context
        .splitting
        .set_prior(common(FileSystem::scales_within_dir));
    context.update_tuner(|tuner| tuner.set_prior(common(FileSystem::scales_across_dirs)));
    for task in tasks {
        context.queue.push(task);
    }
    let max_open = (descriptors as usize / 2 / workers).max(4);
    run_workers(
        &context,
        &tallies,
        max_open,
        arguments.report_interval.unwrap_or(REPORT_INTERVAL),
    );
    if context.throttle.is_cancelled() && !context.is_aborted.load(Relaxed) {
        ExitCode::from(EXIT_CANCELLED)
    } else if context.failures.count() > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Returns a property that all targets' file systems have in common; `None` if they differ.
fn common_property(tasks: &[Task], property: fn(FileSystem) -> Option<bool>) -> Option<bool> {
    all_equal(tasks.iter().map(|task| match task {
        Task::Tree(target, _) => property(target.target().file_system),
        _ => None, // a target is one `Tree` task
    }))
}

fn all_equal(mut values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)?
}

/// Opens all targets and checks their pins, before any deletion starts.
///
/// A target that is not the confirmed directory, or the root of a mount, is an error with this exit
/// code. A target that cannot be opened is a failure, and the others are deleted.
fn open_targets(
    arguments: &Arguments,
    calls: &Syscalls,
    failures: &Failures,
) -> Result<Vec<Task>, ExitCode> {
    let mut tasks = Vec::new();
    for (number, target) in arguments.targets.iter().enumerate() {
        let shown = quoted(target.as_bytes());
        match targets::open(arguments, number, calls) {
            Ok(task) => tasks.push(task),
            Err(TargetError::Failed(error)) => {
                failures.report_message(&format!("cannot open {shown}: {}", reason(error)));
            }
            Err(TargetError::NotConfirmed) => {
                warn(&format!("{shown} is not the directory that was confirmed"));
                return Err(ExitCode::FAILURE);
            }
            Err(TargetError::MountRoot) => {
                warn(&format!(
                    "{shown} is the root of a mount; unmount it first; nothing was deleted"
                ));
                return Err(ExitCode::from(EXIT_REFUSED));
            }
        }
    }
    Ok(tasks)
}

/// Runs all workers to their end, serves commands, and reports the counts meanwhile.
fn run_workers(
    context: &Arc<Context>,
    tallies: &[Tally],
    max_open: usize,
    report_interval: Duration,
) {
    std::thread::scope(|threads| {
        let (worker_sender, workers_ended) = channel::<()>();
        for (number, tally) in tallies.iter().enumerate() {
            let (context, worker_sender) = (&**context, worker_sender.clone());
            let work = move || {
                Worker::new(context, tally, max_open).work();
                drop(worker_sender);
            };
            let started = std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(threads, work);
            if let Err(error) = started {
                context.queue.remove_worker();
                context.update_tuner(ThreadTuner::remove_worker);
                if number == 0 {
                    context.abort(&format!(
                        "no thread can be started: {error}; rm, find and rmtree need none"
                    ));
                }
            }
        }
        drop(worker_sender);
        let listener = Arc::clone(context);
        // The thread is not joined: it reads standard input until the process exits.
        if let Err(error) = std::thread::Builder::new().spawn(move || control::serve(&listener)) {
            warn(&format!("commands cannot be read: {error}"));
        }
        let (mut reported_at, mut poll_interval) = (Instant::now(), Duration::ZERO);
        loop {
            let timeout = poll_interval.min(report_interval.saturating_sub(reported_at.elapsed()));
            let is_over =
                workers_ended.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected);
            let mut threads = 0;
            poll_interval = context.update_tuner(|tuner| {
                tuner.poll(Observation {
                    now: Instant::now(),
                    removed: total_removed(tallies),
                    sched_counts: SchedCounts::read(),
                    busy_workers: context.queue.busy_workers(),
                    is_disturbed: context.throttle.is_limiting()
                        || context.splitting.has_running_trial(),
                });
                threads = tuner.max_active();
            });
            if !is_over && reported_at.elapsed() < report_interval {
                continue;
            }
            reported_at = Instant::now();
            let line = format_counts(tallies, threads, context.splitting.is_worthwhile());
            if let (Err(error), false) = (emit(&line), context.is_aborted.load(Relaxed)) {
                // Without a reader the job could not be observed or stopped.
                context.abort(&format!("the counts cannot be told: {error}"));
            }
            if is_over {
                break;
            }
        }
    });
    drop(context.answer_lock.lock());
}

/// Returns the number of workers that these descriptors suffice for. A worker needs some for its
/// stack, some for the work that it shares, and one for its task.
fn max_workers(descriptors: u64) -> usize {
    (descriptors / MIN_FDS_PER_WORKER).clamp(1, 256) as usize
}

fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(1, |number| number.get().min(MAX_THREADS))
}

/// Raises the soft limit of descriptors; returns the number for directory stacks and shared work.
fn raise_descriptor_limit(targets: u64) -> u64 {
    let (mut current, maximum) = descriptor_limits();
    let wanted = 2 * MAX_OPEN_DIRS + 2 * targets;
    let raised = maximum.min(wanted);
    if current < raised {
        let limits = Rlimit {
            current: Some(raised),
            maximum: (maximum != u64::MAX).then_some(maximum),
        };
        if setrlimit(Resource::Nofile, limits).is_ok() {
            current = raised;
        }
    }
    current.saturating_sub(2 * targets).min(2 * MAX_OPEN_DIRS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_limit_workers() {
        assert_eq!(max_workers(0), 1);
        assert_eq!(max_workers(240), 30);
        assert_eq!(max_workers(u64::MAX), 256);
    }

    #[test]
    fn split_trial_is_not_due_while_speed_is_limited() {
        let context = Context::new(&Arguments::default(), 2);
        let is_trial_due_after = |change: &dyn Fn(&mut ThreadTuner)| {
            context.update_tuner(change);
            context.splitting.is_trial_due()
        };
        assert!(is_trial_due_after(&|_| ()));
        assert!(!is_trial_due_after(&|tuner| tuner.request(Some(1))));
        assert!(is_trial_due_after(&|tuner| tuner.request(Some(2))));
        context.throttle.set_paused(true);
        assert!(!is_trial_due_after(&|_| ()));
        context.throttle.set_paused(false);
        assert!(is_trial_due_after(&|_| ()));
        context.throttle.set_rate(Some(1));
        assert!(!is_trial_due_after(&|_| ()));
        context.throttle.set_rate(None);
        let observation = Observation {
            now: Instant::now(),
            removed: 0,
            sched_counts: SchedCounts::default(),
            busy_workers: 2,
            is_disturbed: false,
        };
        assert!(!is_trial_due_after(&|tuner| {
            tuner.request(None);
            tuner.poll(observation); // the first poll after a gap starts no trial
            tuner.poll(observation);
        }));
        assert!(context.tuner.lock().unwrap().has_running_trial());
    }

    #[test]
    fn property_is_unknown_if_targets_differ() {
        let (yes, no) = (Some(true), Some(false));
        for (values, common) in [
            (vec![], None),
            (vec![no], no),
            (vec![yes, yes], yes),
            (vec![yes, no], None),
            (vec![None, yes], None),
            (vec![no, None], None),
        ] {
            assert_eq!(all_equal(values.into_iter()), common);
        }
    }
}
