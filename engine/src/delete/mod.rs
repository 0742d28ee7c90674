//! Deletes directory trees with several threads.
//!
//! Each worker walks depth first. An idle worker gets half of the highest pending directories of
//! another worker, or names of one directory where that is faster. The worker that finishes the last
//! part of a directory removes it.

mod arguments;
mod control;
mod deferred_evict;
mod dir_stack;
mod output;
mod remover;
mod shared_dir;
mod targets;
mod throttle;
mod worker;

use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, available_parallelism, Scope};
use std::time::{Duration, Instant};

pub use arguments::Arguments;
use dir_stack::OpenDirs;
use output::{emit, format_counts, total_removed, warn, Failures};
use remover::Tally;
use rustix::fd::OwnedFd;
use shared_dir::SharedDir;
use targets::TargetError;
use throttle::Throttle;
use worker::{Part, Task, Worker};
pub use worker::{BUFFER_BYTES, MAX_NAME_BYTES, SHARED_NAMES};

use crate::concurrency::{common_scaling, Concurrency, Observation};
use crate::filters::Filters;
use crate::quoting::{quoted, reason};
use crate::sys::{grow_descriptor_table, ignore_broken_leases, raise_descriptor_limit, usage};
use crate::syscalls::Syscalls;
use crate::work_queue::WorkQueue;

/// Threads at most.
pub const MAX_THREADS: usize = 256;

/// Some entries failed, or a target is not the directory that was confirmed.
const EXIT_FAILURE: u8 = 1;

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
pub const MAX_OPEN_DIRS: u64 = 4_096;

/// The limit of descriptors also limits the number of workers. A worker needs some for its stack, some for
/// the work that it shares, and one for its task.
const MIN_FDS_PER_WORKER: u64 = 8;

/// The state that all workers share.
struct Context {
    queue: WorkQueue<Task>,
    throttle: Throttle,
    open_dirs: OpenDirs,
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
    fn new(
        arguments: &Arguments,
        concurrency: Concurrency,
        max_open: usize,
        failures: Failures,
    ) -> Self {
        let (workers, rate_per_s) = (concurrency.workers(), arguments.rate_per_s);
        Self {
            queue: WorkQueue::new(),
            throttle: Throttle::new(workers, rate_per_s, arguments.is_gentle),
            open_dirs: OpenDirs::new(max_open, workers),
            concurrency: Mutex::new(concurrency),
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
    let descriptors = raise_limit(arguments.targets.len() as u64);
    let failures = Failures::default();
    let mut tallies = vec![Tally::default()];
    let targets = match open_targets(&arguments, &tallies[0].calls, &failures) {
        Ok(targets) => targets,
        Err(code) => return code,
    };
    let file_systems = targets.iter().map(|(root, _)| root.target.file_system);
    let concurrency = Concurrency::new(
        available_parallelism().map_or(1, usize::from),
        (descriptors / MIN_FDS_PER_WORKER).clamp(1, MAX_THREADS as u64) as usize,
        arguments.threads,
        common_scaling(file_systems.map(|known| known.scaling_across_dirs)),
    );
    tallies.resize_with(concurrency.workers(), Tally::default);
    let max_open = descriptors as usize / 2;
    let context = Arc::new(Context::new(&arguments, concurrency, max_open, failures));
    for (directory, descriptor) in targets {
        context.queue.push(Task {
            directory,
            descriptor,
            part: Part::Tree,
        });
    }
    let report_interval = arguments.report_interval.unwrap_or(REPORT_INTERVAL);
    run_workers(&context, &tallies, report_interval);
    if context.throttle.is_cancelled() && !context.is_aborted.load(Relaxed) {
        ExitCode::from(EXIT_CANCELLED)
    } else if context.failures.count() > 0 {
        ExitCode::from(EXIT_FAILURE)
    } else {
        ExitCode::SUCCESS
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
) -> Result<Vec<(Arc<SharedDir>, OwnedFd)>, ExitCode> {
    let mut opened = Vec::new();
    for (number, target) in arguments.targets.iter().enumerate() {
        let shown = quoted(target.as_bytes());
        match targets::open(arguments, number, calls) {
            Ok(directory) => opened.push(directory),
            Err(TargetError::Failed(error)) => {
                failures.report_message(&format!("cannot open {shown}: {}", reason(error)));
            }
            Err(TargetError::Refused(reason, code)) => {
                warn(&format!("{shown} {reason}; nothing was deleted"));
                return Err(ExitCode::from(code));
            }
        }
    }
    Ok(opened)
}

/// Runs all workers to their end, serves commands, and reports the counts meanwhile.
fn run_workers(context: &Arc<Context>, tallies: &[Tally], report_interval: Duration) {
    let work = |number: usize| Worker::new(context, &tallies[number]).work();
    let mut started = 0;
    thread::scope(|scope| {
        let mut poll_interval = start_workers(context, scope, &work, &mut started);
        let listener = Arc::clone(context);
        // The thread is not joined: it reads standard input until the process exits.
        if let Err(error) = thread::Builder::new().spawn(move || control::serve(&listener)) {
            warn(&format!("commands cannot be read: {error}"));
        }
        let mut reported_at = Instant::now();
        loop {
            let timeout = poll_interval.min(report_interval.saturating_sub(reported_at.elapsed()));
            let is_over = context.queue.wait_for_end(timeout);
            let (threads, _) = context.update_concurrency(|concurrency| {
                concurrency.poll(Observation {
                    now: Instant::now(),
                    done: total_removed(tallies),
                    busy: context.queue.busy_workers().min(concurrency.max_active()),
                    usage: usage(),
                    is_limited: context.throttle.is_limiting(),
                });
            });
            if !is_over {
                poll_interval = start_workers(context, scope, &work, &mut started);
            }
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

/// Starts the workers that the concurrency allows now; returns the time until its next poll.
fn start_workers<'scope, 'env, Work: Fn(usize) + Sync>(
    context: &'env Context,
    scope: &'scope Scope<'scope, 'env>,
    work: &'env Work,
    started: &mut usize,
) -> Duration {
    let (allowed, poll_interval) = context.update_concurrency(|_| ());
    let queue = &context.queue;
    let Err(error) = queue.start_workers(scope, STACK_BYTES, work, started, allowed) else {
        return poll_interval;
    };
    if *started == 0 {
        context.abort(&format!(
            "cannot start a thread: {error}; the strategies rm, find and rmtree need none"
        ));
    }
    let limit = |concurrency: &mut Concurrency| concurrency.set_workers(*started);
    context.update_concurrency(limit).1
}

/// Raises the soft limit of descriptors, and enlarges their table; returns the number for directory
/// stacks and shared work.
fn raise_limit(targets: u64) -> u64 {
    let useful = 2 * MAX_OPEN_DIRS;
    let current = raise_descriptor_limit(useful + 2 * targets);
    let descriptors = current.saturating_sub(2 * targets).min(useful);
    grow_descriptor_table(descriptors);
    descriptors
}
