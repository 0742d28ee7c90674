//! A worker: empties directories, shares pending work, and removes empty directories.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use super::deferred_evict::EvictHelper;
use super::dir_stack::DirStack;
use super::names::NameBatch;
use super::remover::{Cancelled, Failure, Remover, Tally};
use super::shared_dir::SharedDir;
use super::work_queue::Task;
use super::Context;
use crate::syscalls::Syscalls;

/// Buffer of getdents64, large enough that the number of calls does not matter.
pub const BUFFER_BYTES: usize = 256 << 10;

/// Names that all workers have read and not removed yet. A larger directory (half a million names of
/// ten letters) is read and removed in parts. The allocator needs up to twice as much.
pub const MAX_NAME_BYTES: usize = 16 << 20;

/// A worker reads names of this size in any case.
const MIN_BATCH_BYTES: usize = 512 << 10;

/// Once the names of pending directories take this much, each further level is read in small parts.
const HIGH_MEMORY_BYTES: usize = 48 << 20;
const SMALL_READ_BYTES: usize = 8 << 10;

/// Removals between two checks for idle workers.
const REMOVALS_PER_CHECK: usize = 64;

/// A worker, which lives as long as its thread.
pub struct Worker<'run> {
    pub(super) context: &'run Context,
    pub(super) remover: Remover<'run>,
    pub(super) calls: &'run Syscalls,
    pub(super) max_open: usize,
    buffer: Vec<MaybeUninit<u8>>,
    batch: Arc<NameBatch>,
}

pub type Outcome<T> = std::result::Result<T, Cancelled>;

impl<'run> Worker<'run> {
    pub fn new(context: &'run Context, tally: &'run Tally, max_open: usize) -> Self {
        Self {
            context,
            remover: Remover::new(&context.throttle, &context.filters, tally),
            calls: &tally.calls,
            max_open,
            buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES],
            batch: Arc::default(),
        }
    }

    /// Works until the queue is closed or the job is cancelled.
    pub fn work(mut self) {
        let (throttle, queue) = (&self.context.throttle, &self.context.queue);
        let mut next = None;
        loop {
            let task = match next.take() {
                Some(task) => task,
                None => {
                    let Some(task) = queue.pop() else {
                        return;
                    };
                    throttle.acquire_slot(&mut self.remover.slot);
                    task
                }
            };
            let outcome = match task {
                Task::Tree(directory, descriptor) => {
                    self.walk(DirStack::new(directory, descriptor, self.max_open))
                }
                Task::Subdirs(directory, descriptor, names, number) => {
                    let mut stack = DirStack::new(directory, descriptor, self.max_open);
                    stack.names.append(&names);
                    stack.top().pending = number;
                    stack.top().has_more = false;
                    self.walk(stack)
                }
                Task::Names(directory, descriptor, batch, range) => {
                    self.remove_range(directory, descriptor, &batch, range)
                }
                Task::Evict(directory, descriptor, evict) => {
                    self.evict_inodes(directory, descriptor, &evict)
                }
            };
            next = match outcome {
                Ok(()) => queue.try_pop(),
                Err(Cancelled) => {
                    throttle.release_slot(&mut self.remover.slot);
                    return;
                }
            };
            if next.is_none() {
                self.remover.leave_dir();
                throttle.release_slot(&mut self.remover.slot);
                queue.mark_idle();
            }
        }
    }

    fn walk(&mut self, mut stack: DirStack) -> Outcome<()> {
        while !stack.levels.is_empty() {
            self.share_subdirs(&mut stack);
            let top = stack.top();
            if top.pending > 0 {
                self.descend(&mut stack)?;
            } else if top.has_more {
                self.read(&mut stack)?;
            } else {
                self.ascend(&mut stack)?;
            }
        }
        Ok(())
    }

    /// Opens the next pending directory and makes it the current one.
    ///
    /// If the name is not a directory any more, removes it.
    fn descend(&mut self, stack: &mut DirStack) -> Outcome<()> {
        self.remover.wait()?;
        let at = stack.take_name();
        let opened = stack
            .open_child(at, self.calls)
            .and_then(|descriptor| stack.push(at, descriptor, self.calls));
        let error = match opened {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        match error {
            Errno::NOENT => (),
            // The directory was replaced by something else after its name was read.
            Errno::NOTDIR | Errno::LOOP => {
                let mut batch = NameBatch::default();
                if self.context.filters.matches_name(stack.names.name(at)) {
                    batch.add_file(stack.names.name(at), 0);
                }
                self.remove_all(stack, &Arc::new(batch))?;
            }
            Errno::XDEV => self.report_failure(stack, at, "open", error),
            _ if self.context.filters.are_active() => self.report_failure(stack, at, "open", error),
            // An unreadable directory may be empty.
            _ => {
                self.remover.wait_to_remove()?;
                match self.calls.rmdir(stack.descriptor(), stack.names.name(at)) {
                    Ok(()) => self.remover.tally.add_directory(),
                    Err(Errno::NOENT) => (),
                    Err(_) => self.report_failure(stack, at, "open", error),
                }
            }
        }
        stack.drop_name(at);
        Ok(())
    }

    /// Reads names of the current directory, and removes those that are not directories.
    fn read(&mut self, stack: &mut DirStack) -> Outcome<()> {
        let cookie = self.read_batch(stack)?;
        stack.set_cookie(cookie);
        stack.clear_names();
        for &name_ref in self.batch.directories.iter().rev() {
            stack.add_name(self.batch.name(name_ref));
        }
        if self.batch.files.is_empty() {
            return Ok(());
        }
        let batch = Arc::clone(&self.batch);
        self.remove_all(stack, &batch)
    }

    /// Reads names up to the memory limit; returns the offset of the next ones if there are more.
    fn read_batch(&mut self, stack: &mut DirStack) -> Outcome<Option<u64>> {
        let (index, context) = (stack.levels.len() - 1, self.context);
        let batch = cleared_batch(&mut self.batch);
        let mut cookie = None;
        loop {
            self.remover.wait()?;
            let total_bytes = context.name_bytes.load(Relaxed) + stack.names.bytes();
            let is_memory_high = total_bytes >= HIGH_MEMORY_BYTES;
            let min_bytes = if is_memory_high { 1 } else { MIN_BATCH_BYTES };
            if batch.bytes() >= min_bytes && total_bytes >= MAX_NAME_BYTES {
                break;
            }
            let read_bytes = if is_memory_high {
                SMALL_READ_BYTES
            } else {
                BUFFER_BYTES
            };
            let buffer = &mut self.buffer[..read_bytes];
            let take = |name: &CStr, kind, inode| match kind {
                FileType::Directory => batch.add_directory(name, inode),
                FileType::Unknown => batch.add_unknown(name, inode),
                _ if context.filters.matches_name(name) => batch.add_file(name, inode),
                _ => (),
            };
            match self.calls.read_names(stack.descriptor(), buffer, take) {
                Ok(Some(next)) => cookie = Some(next),
                Ok(None) | Err(Errno::NOENT) => cookie = None, // NOENT: another process removed it
                Err(error) => {
                    context.failures.report("read", &stack.path(index), error);
                    stack.mark_incomplete(index);
                    cookie = None;
                }
            }
            batch.update_memory_count(&context.name_bytes);
            if cookie.is_none() {
                break;
            }
        }
        for name_ref in std::mem::take(&mut batch.unknown) {
            self.remover.wait()?;
            let name = batch.name(name_ref);
            match kind_of(self.calls, stack.descriptor(), name) {
                Ok(FileType::Directory) => batch.directories.push(name_ref),
                Ok(_) if context.filters.matches_name(name) => batch.files.push(name_ref),
                Ok(_) | Err(Errno::NOENT) => (),
                Err(error) => {
                    let path = join_path(stack.path(index), name);
                    context.failures.report("stat", &path, error);
                    stack.mark_incomplete(index);
                }
            }
        }
        if !stack.file_system.is_in_memory {
            batch.sort();
        }
        Ok(cookie)
    }

    /// Removes the files of a batch in the current directory. Other workers may take a share.
    fn remove_all(&mut self, stack: &mut DirStack, batch: &Arc<NameBatch>) -> Outcome<()> {
        let index = stack.levels.len() - 1;
        let mut failures = Vec::new();
        let (mut begin, mut end) = (0, batch.files.len());
        let mut evict_helper = EvictHelper::none();
        let cwd = self.remover.enter_dir(stack.descriptor());
        while begin < end {
            let part = begin..(begin + REMOVALS_PER_CHECK).min(end);
            let next = part.end;
            let remover = &mut self.remover;
            let (dirfd, progress) = (stack.descriptor(), evict_helper.progress());
            let outcome = remover.remove_names(dirfd, cwd, batch, part, progress, &mut failures);
            if !failures.is_empty() {
                self.report_failures(&mut failures, batch, &stack.path(index));
                stack.mark_incomplete(index);
            }
            outcome?;
            begin = next;
            self.share_subdirs(stack);
            end = self.share_names(stack, batch, begin, end, &mut evict_helper);
        }
        Ok(())
    }

    fn remove_range(
        &mut self,
        directory: Arc<SharedDir>,
        descriptor: OwnedFd,
        batch: &Arc<NameBatch>,
        range: Range<usize>,
    ) -> Outcome<()> {
        let mut failures = Vec::new();
        let cwd = self.remover.enter_dir(descriptor.as_fd());
        for begin in range.clone().step_by(REMOVALS_PER_CHECK) {
            let part = begin..(begin + REMOVALS_PER_CHECK).min(range.end);
            let remover = &mut self.remover;
            let dirfd = descriptor.as_fd();
            let outcome = remover.remove_names(dirfd, cwd, batch, part, None, &mut failures);
            if !failures.is_empty() {
                self.report_failures(&mut failures, batch, &directory.path());
                directory.mark_incomplete();
            }
            outcome?;
        }
        self.finish_shared_dir(directory, Some(descriptor))
    }

    /// Reports a failure on a name in the current directory.
    pub(super) fn report_failure(
        &self,
        stack: &mut DirStack,
        at: u32,
        operation: &str,
        error: Errno,
    ) {
        let index = stack.levels.len() - 1;
        let path = join_path(stack.path(index), stack.names.name(at));
        self.context.failures.report(operation, &path, error);
        stack.mark_incomplete(index);
    }

    fn report_failures(&self, failures: &mut Vec<Failure>, batch: &NameBatch, path: &[u8]) {
        for failure in failures.drain(..) {
            let path = join_path(path.to_vec(), batch.name(failure.name_ref));
            self.context
                .failures
                .report(failure.operation, &path, failure.error);
        }
    }
}

fn cleared_batch(batch: &mut Arc<NameBatch>) -> &mut NameBatch {
    let is_reusable = Arc::get_mut(batch).is_some_and(|batch| batch.bytes() < MIN_BATCH_BYTES);
    if !is_reusable {
        *batch = Arc::default();
    }
    let batch = Arc::get_mut(batch).expect("it has no other owner");
    batch.clear();
    batch
}

fn kind_of(calls: &Syscalls, directory: BorrowedFd<'_>, name: &CStr) -> Result<FileType> {
    let status = calls.stat(directory, name)?;
    Ok(FileType::from_raw_mode(status.st_mode))
}

fn join_path(mut path: Vec<u8>, name: &CStr) -> Vec<u8> {
    path.push(b'/');
    path.extend_from_slice(name.to_bytes());
    path
}
