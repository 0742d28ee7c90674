//! `tui-fs-engine survey`: counts directory trees.
//!
//! Walkers read directories and emit the sums of each, as messages that tui_fs/survey/engine.py reads.

mod access;
mod args;
mod dir_progress;
mod emitter;
mod histogram;
mod labels;
mod name_flags;
mod records;
mod stack;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod totals;
mod walker;

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{geteuid, getppid, Pid, Signal};

use self::access::User;
use self::args::Args;
use self::emitter::Output;
use self::histogram::Classes;
use self::labels::{LabelTable, Labels};
use self::records::Batch;
pub use self::records::FORMAT as RECORD_FORMAT;
use self::walker::{Job, Walker};
use crate::concurrency::{
    common_scaling, Concurrency, Observation, Scaling, MAX_COMPUTING, MAX_WAITING,
};
use crate::file_systems::FileSystem;
use crate::filters::Filters;
use crate::identity::DevIno;
use crate::quoting::reason;
use crate::sys::{raise_descriptor_limit, usage};
use crate::syscalls::Syscalls;
use crate::work_queue::WorkQueue;

/// Small, because nothing is recursive.
const STACK_BYTES: usize = 256 << 10;

/// Standard streams, and descriptors that may have been inherited.
const RESERVED_FDS: usize = 16;

/// Descriptors of a walker outside its stack: the directory being read, two while ascending, and
/// those of the jobs that it has shared.
const WORK_FDS_PER_WALKER: usize = 6;

/// `Limits::names_per_check` where walkers may wait for a server.
const NAMES_PER_CHECK: usize = 8;

/// Open directories for each of many walkers that wait for a server.
const MIN_OPEN: usize = 16;

/// Sizes and intervals of a walker.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Buffer of getdents64: 256 KiB for about 8,000 names.
    pub buffer_bytes: usize,
    /// With this many names from one getdents64, the names are shared with another walker (they are
    /// milliseconds of work) and processed in the order of inodes. Fewer names have inodes that are close
    /// to each other in any order.
    pub min_shared_names: usize,
    /// Names between two checks for idle walkers, which get half of the rest. Only where walkers may
    /// wait for a server at each name.
    pub names_per_check: Option<usize>,
    /// Pending names of one directory. With more, the rest is read later.
    pub max_pending_bytes: usize,
    /// Open directories on the stack of a walker.
    pub max_open: usize,
    pub max_records: usize,
    pub send_interval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            buffer_bytes: 256 << 10,
            min_shared_names: 2_000,
            names_per_check: None,
            max_pending_bytes: 1 << 20,
            max_open: 64,
            max_records: 4_000,
            send_interval: Duration::from_millis(100),
        }
    }
}

#[derive(Debug)]
pub struct Root {
    pub path: Vec<u8>,
    pub descriptor: Arc<OwnedFd>,
    pub device: u64,
    pub owner: u32,
    pub scaling: Scaling,
}

pub struct Context {
    pub roots: Vec<Root>,
    /// Entries that are also counted separately, and the share of the roots that is counted.
    pub filters: Filters,
    /// Of the histograms; `None` for no histogram.
    pub classes: Option<Classes>,
    pub labels: LabelTable,
    pub user: User,
    pub limits: Limits,
    pub queue: WorkQueue<Job>,
    /// Entries that were examined, for the concurrency.
    pub examined: AtomicU64,
    pub output: Output,
    /// Number of the next directory.
    pub next_number: AtomicU64,
}

/// Surveys the roots; the messages go to standard output.
pub fn main(arguments: &mut lexopt::Parser) -> Result<ExitCode, lexopt::Error> {
    let args = Args::parse(arguments)?;
    if !args.totals && io::stdout().is_terminal() {
        return Err("the records are binary; add --totals to print sums".into());
    }
    let done = (args.parent.map_or(Ok(()), set_parent_death_signal))
        .and_then(|()| standard_output(args.totals))
        .and_then(|output| survey(args, output, Limits::default()));
    match done {
        Ok(true) => Ok(ExitCode::SUCCESS),
        Ok(false) => Ok(ExitCode::FAILURE),
        Err(sentence) => {
            eprintln!("tui-fs-engine: {sentence}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Makes the kernel kill this process when its parent ends, even while it is stopped.
///
/// If a filter refuses that, the process ends with its next message.
fn set_parent_death_signal(parent: i32) -> Result<(), String> {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().map(Pid::as_raw_pid) == Some(parent) {
        return Ok(());
    }
    Err(String::from("the parent process has ended."))
}

fn standard_output(totals: bool) -> Result<Output, String> {
    // `Stdout` would flush at line ends.
    let copy = io::stdout().as_fd().try_clone_to_owned();
    let file = copy.map_err(|error| format!("cannot use standard output: {error}."))?;
    Ok(Output::new(Box::new(File::from(file)), totals))
}

/// Returns whether everything was counted, as far as the output knows.
fn survey(args: Args, output: Output, mut limits: Limits) -> Result<bool, String> {
    let numbered = args.roots.iter().enumerate();
    let roots = numbered.map(|(number, path)| open_root(path, args.pins.get(number)));
    let roots = roots.collect::<Result<Vec<Root>, String>>()?;
    let scaling = common_scaling(roots.iter().map(|root| root.scaling));
    let useful = match scaling.may_wait() {
        true => MAX_WAITING * (WORK_FDS_PER_WALKER + MIN_OPEN),
        false => 0,
    };
    let limit = raise_descriptor_limit(useful as u64) as usize;
    let available = limit.saturating_sub(roots.len() + RESERVED_FDS);
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let processors = processors.min(MAX_COMPUTING);
    let concurrency = Concurrency::new(
        processors,
        available / (WORK_FDS_PER_WALKER + 2),
        args.threads.or((!scaling.may_wait()).then_some(processors)),
        scaling,
    );
    let walkers = concurrency.workers();
    limits.max_open = (available / walkers)
        .saturating_sub(WORK_FDS_PER_WALKER)
        .clamp(1, limits.max_open);
    if scaling.may_wait() {
        limits.names_per_check.get_or_insert(NAMES_PER_CHECK);
    }
    let context = Context {
        queue: WorkQueue::new(),
        filters: args.filters,
        classes: args.classes,
        labels: LabelTable::default(),
        user: User {
            uid: geteuid().as_raw(),
            private_groups: args.private_groups,
        },
        limits,
        examined: AtomicU64::new(0),
        output,
        next_number: AtomicU64::new(0),
        roots,
    };
    if context.classes.is_some() {
        let mut batch = Batch::default();
        Labels::new(&context.labels).owner(context.roots[0].owner, &mut batch.labels);
        context.output.send_batch(&batch);
    }
    for root in 0..context.roots.len() {
        context.queue.push(Job::Root(root));
    }
    walk(&context, concurrency);
    Ok(context.output.finish())
}

fn walk(context: &Context, mut concurrency: Concurrency) {
    let work = |_| Walker::new(context).run();
    let (queue, mut started) = (&context.queue, 0);
    thread::scope(|scope| {
        loop {
            let allowed = concurrency.max_active();
            queue.set_max_busy(allowed);
            // If the user's limit of threads is reached, there are fewer, or only this one.
            let grown = queue.start_workers(scope, STACK_BYTES, &work, &mut started, allowed);
            if grown.is_err() {
                if started == 0 {
                    let _worker = queue.register();
                    return work(0);
                }
                concurrency.set_workers(started);
            }
            if queue.wait_for_end(concurrency.poll_interval()) {
                return;
            }
            concurrency.poll(Observation {
                now: Instant::now(),
                done: context.examined.load(Relaxed),
                busy: queue.busy_workers(),
                usage: usage(),
                is_limited: false,
            });
        }
    });
}

fn open_root(path: &Path, pin: Option<&DevIno>) -> Result<Root, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let shown = path.as_os_str().as_bytes().escape_ascii();
    let unreadable = |error: Errno| format!("{shown} cannot be read: {}.", reason(error));
    let descriptor = rustix::fs::open(path, flags, Mode::empty()).map_err(unreadable)?;
    let status = rustix::fs::fstat(&descriptor).map_err(unreadable)?;
    let identity = DevIno::from_stat(&status);
    if pin.is_some_and(|pin| *pin != identity) {
        return Err(format!("another directory is now at {shown}."));
    }
    let file_system = FileSystem::of(descriptor.as_fd(), &Syscalls::default());
    Ok(Root {
        path: path.as_os_str().as_bytes().to_vec(),
        scaling: file_system.map_or(Scaling::Unknown, |known| known.scaling_across_dirs),
        descriptor: Arc::new(descriptor),
        device: identity.device,
        owner: status.st_uid,
    })
}
