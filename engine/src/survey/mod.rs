//! `tui-fs-engine survey`: tells a program what is in directories.
//!
//! Threads read directories and tell sums of each, as messages that tui_fs/survey/engine.py reads.

mod acl;
mod args;
mod context;
mod dir_reader;
mod dirent_batch;
mod emitter;
mod marshal;
mod names;
mod output;
mod pool;
mod records;
mod stack;
mod tally;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod walker;

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::thread;

use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{geteuid, getppid, Pid, Signal};

use self::args::Request;
use self::context::{Limits, Root, Shared};
use self::dir_reader::User;
use self::output::Output;
use self::pool::Pool;
use self::records::Batch;
use self::walker::Walker;
use crate::descriptors::descriptor_limits;
use crate::identity::DevIno;
use crate::quoting::reason;

/// More have not counted faster.
const THREADS_AT_MOST: usize = 8;

/// A walker's small stack: nothing here calls itself.
const STACK_BYTES: usize = 256 << 10;

/// Standard streams, and some that others may have left open.
const FURTHER_DESCRIPTORS: usize = 16;

/// What a walker opens besides those on its stack: the directory being read, two on the way up,
/// and those of the work that it has given away.
const DESCRIPTORS_AT_WORK: usize = 6;

/// Counts what the arguments name; the messages go to standard output.
pub fn main(arguments: &mut lexopt::Parser) -> Result<ExitCode, lexopt::Error> {
    let request = Request::parse(arguments)?;
    let done = end_with(request.parent)
        .and_then(|()| standard_output())
        .and_then(|output| survey(request, output, Limits::default()));
    match done {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(sentence) => {
            eprintln!("tui-fs-engine: {sentence}");
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Has the kernel kill this process when the one that started it ends, even while it is stopped.
///
/// Where a filter refuses that, the process ends when it writes its next message.
fn end_with(parent: Option<i32>) -> Result<(), String> {
    let Some(parent) = parent else {
        return Ok(());
    };
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().map(Pid::as_raw_pid) == Some(parent) {
        return Ok(());
    }
    Err(String::from("the process that asked has ended."))
}

fn standard_output() -> Result<Output, String> {
    // Not std's own, which looks for the ends of lines.
    let copy = io::stdout().as_fd().try_clone_to_owned();
    let file = copy.map_err(|why| format!("standard output cannot be used: {why}."))?;
    Ok(Output::new(Box::new(File::from(file))))
}

fn survey(request: Request, output: Output, mut limits: Limits) -> Result<(), String> {
    let roots = open_roots(&request)?;
    let spare = spare_descriptors(roots.len());
    let wanted = request.threads.unwrap_or_else(|| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        processors.min(THREADS_AT_MOST)
    });
    let walkers = wanted.min(spare / (DESCRIPTORS_AT_WORK + 2)).max(1);
    limits.open = (spare / walkers)
        .saturating_sub(DESCRIPTORS_AT_WORK)
        .clamp(1, limits.open);
    let shared = Shared {
        pool: Pool::new(walkers, roots.len()),
        roots,
        names_only: request.names_only,
        filters: request.filters.are_active().then_some(request.filters),
        user: User {
            uid: geteuid().as_raw(),
            private_groups: request.private_groups,
        },
        limits,
        output,
        number: AtomicU64::new(0),
    };
    walk(&shared, walkers);
    shared.output.send(&Batch::last());
    Ok(())
}

fn walk(shared: &Shared, walkers: usize) {
    thread::scope(|scope| {
        for _ in 1..walkers {
            let walker = thread::Builder::new().stack_size(STACK_BYTES);
            let started = walker.spawn_scoped(scope, || Walker::new(shared).run());
            if started.is_err() {
                shared.pool.lose_walker(); // as many as the limits of this user allow
            }
        }
        Walker::new(shared).run();
    });
}

fn open_roots(request: &Request) -> Result<Vec<Root>, String> {
    let pins = request.pins.iter().map(Some);
    let roots = request.roots.iter();
    roots
        .zip(pins.chain(std::iter::repeat(None)))
        .map(|(path, pin)| open_root(path, pin))
        .collect()
}

fn open_root(path: &Path, pin: Option<&DevIno>) -> Result<Root, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let shown = path.as_os_str().as_bytes().escape_ascii();
    let unreadable = |why: Errno| format!("{shown} cannot be read: {}.", reason(why));
    let descriptor = rustix::fs::open(path, flags, Mode::empty()).map_err(unreadable)?;
    let status = rustix::fs::fstat(&descriptor).map_err(unreadable)?;
    let identity = DevIno::from_stat(&status);
    if pin.is_some_and(|pin| *pin != identity) {
        return Err(format!("another directory stands at {shown} by now."));
    }
    Ok(Root {
        path: path.as_os_str().as_bytes().to_vec(),
        descriptor: Arc::new(descriptor),
        device: identity.device,
    })
}

fn spare_descriptors(roots: usize) -> usize {
    let (limit, _) = descriptor_limits();
    (limit as usize).saturating_sub(roots + FURTHER_DESCRIPTORS)
}
