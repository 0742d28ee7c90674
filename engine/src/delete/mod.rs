//! Deletes directory trees with several threads.
//!
//! Each worker walks depth first. An idle worker gets half of the highest pending directories of
//! another worker, or names of one directory where that is faster. The worker that finishes the last
//! part of a directory removes it.

mod arguments;
mod concurrency;
mod control;
mod deferred_evict;
mod dir_stack;
mod file_systems;
mod names;
mod output;
mod remover;
mod shared_dir;
mod targets;
mod throttle;
mod worker;

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{setrlimit, Resource, Rlimit};

pub use arguments::Arguments;
pub use concurrency::Scaling;
use concurrency::{Concurrency, Observation, SchedCounts};
pub use deferred_evict::MAX_EVICT_FDS;
pub use file_systems::{FileSystem, KNOWN};
use output::{emit, format_counts, total_removed, warn, Failures};
use remover::Tally;
use targets::TargetError;
use throttle::Throttle;
use worker::{Task, Worker};
pub use worker::{BUFFER_BYTES, MAX_NAME_BYTES, SHARED_NAMES};

use crate::filters::Filters;
use crate::quoting::{quoted, reason};
use crate::sys::{descriptor_limits, grow_descriptor_table, ignore_broken_leases};
use crate::syscalls::Syscalls;
use crate::work_queue::WorkQueue;

/// Threads at most.
pub const MAX_THREADS: usize = 256;

/// Threads at most if no number is requested. The gain of more was not measured.
pub const MAX_AUTO_THREADS: usize = 8;

/// The shell's status of a command that SIGINT has killed.
const EXIT_CANCELLED: u8 = 130;

/// The exit code of tui-fs after a refusal by a safety rule.
const EXIT_REFUSED: u8 = 3;

/// Any value but the empty one turns every deletion off, as in tui-fs.
const READ_ONLY_VARIABLE: &str = "TUI_FS_READ_ONLY";

const REPORT_INTERVAL: Duration = Duration::from_millis(250);

/// Enough for the recursive drop of a chain of `worker::MAX_SHARED_DEPTH` shared directories.
const STACK_BYTES: usize = 512 << 10;

/// Descriptors of all directory stacks together, if the process may have twice as many.
pub const MAX_OPEN_DIRS: u64 = 2_048;

/// The limit of descriptors also limits the number of workers.
const MIN_FDS_PER_WORKER: u64 = 8;

/// The state that all workers share.
struct Context {
    queue: WorkQueue<Task>,
    throttle: Throttle,
    concurrency: Mutex<Concurrency>,
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
    fn new(arguments: &Arguments, workers: usize, scaling: Scaling, failures: Failures) -> Self {
        Self {
            queue: WorkQueue::new(workers),
            throttle: Throttle::new(workers, arguments.rate_per_s, arguments.is_gentle),
            concurrency: Mutex::new(Concurrency::new(workers, arguments.threads, scaling)),
            filters: arguments.filters.clone(),
            failures,
            name_bytes: Arc::default(),
            answer_lock: Mutex::default(),
            is_aborted: AtomicBool::new(false),
        }
    }

    fn cancel(&self) {
        self.throttle.cancel();
        self.queue.close();
    }

    /// Changes the concurrency and applies its number of workers.
    ///
    /// Returns that number and the time until the next poll.
    fn update_concurrency(&self, change: impl FnOnce(&mut Concurrency)) -> (usize, Duration) {
        let mut concurrency = self.concurrency.lock().expect("no worker panics");
        change(&mut concurrency);
        let max_active = concurrency.max_active();
        self.throttle.set_max_active(max_active);
        self.queue.set_max_busy(max_active);
        (max_active, concurrency.poll_interval())
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
            "the environment variable {READ_ONLY_VARIABLE} turns deletion off; nothing was deleted"
        ));
        return ExitCode::from(EXIT_REFUSED);
    }
    ignore_broken_leases();
    let descriptors = raise_descriptor_limit(arguments.targets.len() as u64);
    grow_descriptor_table(descriptors);
    let workers = arguments.threads.unwrap_or_else(default_workers);
    let workers = workers.min(max_workers(descriptors));
    let tallies: Vec<Tally> = (0..workers)
        .map(|_| Tally::new(Syscalls::new(arguments.without_openat2)))
        .collect();
    let failures = Failures::default();
    let tasks = match open_targets(&arguments, &tallies[0].calls, &failures) {
        Ok(tasks) => tasks,
        Err(code) => return code,
    };
    let context = Arc::new(Context::new(
        &arguments,
        workers,
        common_scaling(&tasks),
        failures,
    ));
    context.update_concurrency(|_| ());
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

/// Returns the effect of several workers on the file systems of all targets.
fn common_scaling(tasks: &[Task]) -> Scaling {
    all_equal(tasks.iter().map(|task| match task {
        Task::Tree(target, _) => target.target().file_system.scaling_across_dirs,
        _ => Scaling::Unknown, // a target is one `Tree` task
    }))
}

fn all_equal(mut scalings: impl Iterator<Item = Scaling>) -> Scaling {
    let first = scalings.next().unwrap_or(Scaling::Unknown);
    match scalings.all(|scaling| scaling == first) {
        true => first,
        false => Scaling::Unknown,
    }
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
                warn(&format!(
                    "{shown} is not the directory that was confirmed; nothing was deleted"
                ));
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
                context.update_concurrency(Concurrency::remove_worker);
                if number == 0 {
                    context.abort(&format!(
                        "cannot start a thread: {error}; the strategies rm, find and rmtree need none"
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
            let (threads, next_poll) = context.update_concurrency(|concurrency| {
                concurrency.poll(Observation {
                    now: Instant::now(),
                    removed: total_removed(tallies),
                    sched_counts: SchedCounts::read(),
                    is_limited: context.throttle.is_limiting(),
                });
            });
            poll_interval = next_poll;
            if !is_over && reported_at.elapsed() < report_interval {
                continue;
            }
            reported_at = Instant::now();
            let line = format_counts(tallies, threads);
            if let (Err(error), false) = (emit(&line), context.is_aborted.load(Relaxed)) {
                // Without a reader the job could not be observed or stopped.
                context.abort(&format!("cannot write the counts: {error}"));
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
    (descriptors / MIN_FDS_PER_WORKER).clamp(1, MAX_THREADS as u64) as usize
}

fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(1, |number| number.get().min(MAX_AUTO_THREADS))
}

/// Raises the soft limit of descriptors; returns the number for directory stacks and shared work.
fn raise_descriptor_limit(targets: u64) -> u64 {
    let (mut current, maximum) = descriptor_limits();
    let max_useful = 2 * MAX_OPEN_DIRS + 2 * targets;
    let raised = maximum.min(max_useful);
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
    fn scaling_is_unknown_if_targets_differ() {
        use Scaling::{Faster, Slower, Unknown};
        for (scalings, common) in [
            (vec![], Unknown),
            (vec![Slower], Slower),
            (vec![Faster, Faster], Faster),
            (vec![Faster, Slower], Unknown),
            (vec![Unknown, Faster], Unknown),
        ] {
            assert_eq!(all_equal(scalings.into_iter()), common);
        }
    }
}
