//! A worker: empties directories, shares pending work with idle workers, and removes empty
//! directories while ascending.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use super::deferred_evict::{DeferredEvict, MAX_EVICT_FDS};
use super::dir_stack::DirStack;
use super::remover::{Outcome, Remover, Tally};
use super::shared_dir::SharedDir;
use super::throttle::Cancelled;
use super::Context;
use crate::identity::DevIno;
use crate::names::NameBatch;
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

/// Removals between two checks for idle workers, and where each may take milliseconds.
const REMOVALS_PER_CHECK: usize = 64;
const WAITING_REMOVALS_PER_CHECK: usize = 4;

/// Names of one directory that one task contains.
pub const SHARED_NAMES: usize = 512;

/// Queued parts of a directory per worker. Each of them has a descriptor.
const MAX_QUEUED_PER_WORKER: usize = 2;

/// Deeper directories are not shared, because a `SharedDir` takes more memory than a level.
const MAX_SHARED_DEPTH: usize = 4_096;

/// Retries after ENOTEMPTY. Another process may have added entries, or readdir skipped some.
const MAX_REREADS: usize = 3;

/// Work in a directory. Each task owns a descriptor of its directory.
pub struct Task {
    pub directory: Arc<SharedDir>,
    pub descriptor: OwnedFd,
    pub part: Part,
}

/// The part of a directory that a task empties.
pub enum Part {
    /// Everything in it.
    Tree,
    /// Some subdirectories (see `NameStack::copy`), and their number.
    Subdirs(Box<[u8]>, u32),
    /// Some names that are not directories.
    Names(Arc<NameBatch>, Range<usize>),
    /// Only the inodes, whose names another worker removes.
    Evict(Arc<DeferredEvict>),
}

/// A worker, which lives as long as its thread.
pub struct Worker<'run> {
    context: &'run Context,
    remover: Remover<'run>,
    calls: &'run Syscalls,
    buffer: Vec<MaybeUninit<u8>>,
    batch: Arc<NameBatch>,
}

impl<'run> Worker<'run> {
    pub fn new(context: &'run Context, tally: &'run Tally) -> Self {
        Self {
            context,
            remover: Remover::new(&context.throttle, &context.filters, tally),
            calls: &tally.calls,
            buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES],
            batch: Arc::default(),
        }
    }

    /// Works until the queue is closed or the job is cancelled.
    pub fn work(mut self) {
        let (throttle, queue) = (&self.context.throttle, &self.context.queue);
        while let Some(task) = queue.pop() {
            throttle.acquire_slot();
            let mut next = Some(task);
            while let Some(task) = next {
                if let Err(Cancelled) = self.run(task) {
                    return throttle.release_slot();
                }
                next = queue.try_pop();
            }
            self.remover.leave_dir();
            throttle.release_slot();
            queue.mark_idle();
        }
    }

    pub(super) fn run(&mut self, task: Task) -> Outcome<()> {
        let (directory, descriptor) = (task.directory, task.descriptor);
        let open_dirs = &self.context.open_dirs;
        match task.part {
            Part::Tree => return self.walk(DirStack::new(directory, descriptor, open_dirs)),
            Part::Subdirs(names, number) => {
                let mut stack = DirStack::new(directory, descriptor, open_dirs);
                stack.names.append(&names);
                stack.top().pending = number;
                stack.top().has_more = false;
                return self.walk(stack);
            }
            Part::Names(batch, range) => {
                self.remove_range(&directory, descriptor.as_fd(), &batch, range)?;
            }
            Part::Evict(evict) => self.evict_inodes(descriptor.as_fd(), evict),
        }
        self.finish_shared_dir(directory, Some(descriptor), None)
    }

    fn walk(&mut self, mut stack: DirStack<'_>) -> Outcome<()> {
        while !stack.levels.is_empty() {
            self.share_subdirs(&mut stack, false);
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
    fn descend(&mut self, stack: &mut DirStack<'_>) -> Outcome<()> {
        self.context.throttle.admit(false)?;
        let at = stack.take_name();
        let opened = stack.open_child(at, self.calls);
        let Err(error) = opened.and_then(|child| stack.push(at, child, self.calls)) else {
            return Ok(());
        };
        match error {
            Errno::NOENT => (),
            _ if self.remover.has_vanished(stack.descriptor(), error) => (),
            // The directory was replaced by something else after its name was read.
            Errno::NOTDIR | Errno::LOOP => {
                let mut batch = NameBatch::default();
                if self.context.filters.matches_name(stack.names.name(at)) {
                    batch.add(FileType::RegularFile, stack.names.name(at), 0);
                }
                let files = batch.refs.len();
                self.remove_all(stack, &Arc::new(batch), files)?;
            }
            _ if error == Errno::XDEV || self.context.filters.are_active() => {
                self.report_failure(stack, at, "open", error);
            }
            // An unreadable directory may be empty.
            _ => {
                self.context.throttle.admit(true)?;
                let (parent, name) = (stack.descriptor(), stack.names.name(at));
                match self.remover.remove_dir(parent, name) {
                    Ok(()) | Err(Errno::NOENT) => (),
                    Err(_) => self.report_failure(stack, at, "open", error),
                }
            }
        }
        stack.drop_name(at);
        Ok(())
    }

    /// Reads names of the current directory, and removes those that are not directories.
    fn read(&mut self, stack: &mut DirStack<'_>) -> Outcome<()> {
        let (cookie, files) = self.read_batch(stack)?;
        let top = stack.top();
        (top.has_more, top.cookie) = (cookie.is_some(), cookie.unwrap_or_default());
        stack.clear_names();
        for &name_ref in self.batch.refs[files..].iter().rev() {
            stack.add_name(self.batch.name(name_ref));
        }
        if files == 0 {
            return Ok(());
        }
        let batch = Arc::clone(&self.batch);
        self.remove_all(stack, &batch, files)
    }

    /// Reads names up to the memory limit; returns the offset of the next ones if there are more, and
    /// the number of files, which are in front.
    fn read_batch(&mut self, stack: &mut DirStack<'_>) -> Outcome<(Option<u64>, usize)> {
        let (index, context) = (stack.levels.len() - 1, self.context);
        let is_target = stack.depth(index) == 0;
        let batch = cleared_batch(&mut self.batch);
        let mut cookie = None;
        loop {
            self.context.throttle.admit(false)?;
            let total_bytes = context.name_bytes.load(Relaxed) + stack.names.bytes();
            let is_memory_high = total_bytes >= HIGH_MEMORY_BYTES;
            let (min_bytes, read_bytes) = match is_memory_high {
                true => (1, SMALL_READ_BYTES),
                false => (MIN_BATCH_BYTES, BUFFER_BYTES),
            };
            if batch.bytes() >= min_bytes && total_bytes >= MAX_NAME_BYTES {
                break;
            }
            let buffer = &mut self.buffer[..read_bytes];
            let mut take = |name: &CStr, kind, inode| match kind {
                _ if is_target && !context.filters.share_contains(name) => (),
                FileType::Directory | FileType::Unknown => batch.add(kind, name, inode),
                _ if context.filters.matches_name(name) => batch.add(kind, name, inode),
                _ => (),
            };
            let mut read = self.calls.read_names(stack.descriptor(), buffer, &mut take);
            if matches!(read, Err(Errno::STALE)) {
                // The server no longer knew the directory, perhaps because it was restarted.
                let buffer = &mut self.buffer[..read_bytes];
                read = self.calls.read_names(stack.descriptor(), buffer, take);
            }
            cookie = match read {
                Ok(next) => next,
                Err(Errno::NOENT) => None, // another process removed it
                Err(error) if self.remover.has_vanished(stack.descriptor(), error) => None,
                Err(error) => {
                    context.failures.report("read", &stack.path(index), error);
                    stack.mark_incomplete(index);
                    None
                }
            };
            batch.update_memory_count(&context.name_bytes);
            if cookie.is_none() {
                break;
            }
        }
        for at in 0..batch.refs.len() {
            let name_ref = batch.refs[at];
            if name_ref.kind != FileType::Unknown {
                continue;
            }
            self.context.throttle.admit(false)?;
            let name = batch.name(name_ref);
            let status = self.calls.stat(stack.descriptor(), name);
            match status.map(|status| FileType::from_raw_mode(status.st_mode)) {
                Ok(kind) if kind == FileType::Directory || context.filters.matches_name(name) => {
                    batch.refs[at].kind = kind;
                }
                Ok(_) | Err(Errno::NOENT) => (),
                Err(error) if self.remover.has_vanished(stack.descriptor(), error) => (),
                Err(error) => {
                    let path = join_path(stack.path(index), name);
                    context.failures.report("stat", &path, error);
                    stack.mark_incomplete(index);
                }
            }
        }
        let refs = &mut batch.refs;
        refs.retain(|name_ref| name_ref.kind != FileType::Unknown);
        Ok((cookie, batch.partition(!stack.file_system.is_in_memory)))
    }

    /// Removes the files of a batch in the current directory. Other workers may take a share.
    fn remove_all(
        &mut self,
        stack: &mut DirStack<'_>,
        batch: &Arc<NameBatch>,
        mut end: usize,
    ) -> Outcome<()> {
        let index = stack.levels.len() - 1;
        let mut begin = 0;
        let mut evict_helper: Option<Arc<DeferredEvict>> = None;
        let cwd = self.remover.enter_dir(stack.descriptor());
        let may_wait = stack.file_system.scaling_across_dirs.may_wait();
        let per_check = match may_wait {
            true => WAITING_REMOVALS_PER_CHECK,
            false => REMOVALS_PER_CHECK,
        };
        while begin < end {
            self.share_subdirs(stack, may_wait);
            let next = (begin + per_check).min(end);
            let progress = evict_helper.as_ref().map(|evict| &evict.progress);
            let mut has_failed = false;
            let mut report = |name: &CStr, operation: &str, error| {
                let path = join_path(stack.path(index), name);
                self.context.failures.report(operation, &path, error);
                has_failed = true;
            };
            let (dirfd, range) = (stack.descriptor(), begin..next);
            let outcome =
                (self.remover).remove_names(dirfd, cwd, batch, range, progress, &mut report);
            if has_failed {
                stack.mark_incomplete(index);
            }
            outcome?;
            begin = next;
            end = self.share_names(stack, batch, begin, end, &mut evict_helper);
        }
        Ok(())
    }

    fn remove_range(
        &mut self,
        directory: &SharedDir,
        descriptor: BorrowedFd<'_>,
        batch: &NameBatch,
        range: Range<usize>,
    ) -> Outcome<()> {
        let cwd = self.remover.enter_dir(descriptor);
        let mut report = |name: &CStr, operation: &str, error| {
            let path = join_path(directory.path(), name);
            self.context.failures.report(operation, &path, error);
            directory.mark_incomplete();
        };
        (self.remover).remove_names(descriptor, cwd, batch, range, None, &mut report)
    }

    /// Shares half of the highest pending directories if a worker is idle.
    ///
    /// The last pending directory stays with a worker that has no slower work to do meanwhile: sharing
    /// it would only move the work.
    fn share_subdirs(&mut self, stack: &mut DirStack<'_>, is_busy: bool) {
        if !self.context.queue.has_idle_worker() {
            return;
        }
        let last = stack.levels.len() - 1;
        while stack.first_pending < last && stack.levels[stack.first_pending].pending == 0 {
            stack.first_pending += 1;
        }
        let index = stack.first_pending;
        let pending = stack.levels[index].pending;
        let shared = match index == last && !is_busy {
            true => pending / 2,
            false => pending.div_ceil(2),
        };
        if shared == 0 || stack.depth(index) > MAX_SHARED_DEPTH {
            return;
        }
        self.queue_part(stack, index, |stack| {
            let level = &mut stack.levels[index];
            let (names, to) = stack.names.copy(level.first_name, shared as usize);
            level.first_name = to;
            level.pending -= shared;
            Part::Subdirs(names, shared)
        });
    }

    /// Queues a part of a level; returns whether it did. Without a descriptor of the level, the work
    /// waits for this worker.
    fn queue_part(
        &self,
        stack: &mut DirStack<'_>,
        index: usize,
        take: impl FnOnce(&mut DirStack<'_>) -> Part,
    ) -> bool {
        let opened = stack.levels[index].descriptor.as_ref();
        let copy = opened.map(|opened| self.calls.duplicate(opened.as_fd()));
        let Some(Ok(descriptor)) = copy else {
            return false;
        };
        let directory = Arc::clone(stack.share(index));
        directory.add_pending();
        self.context.queue.push(Task {
            directory,
            descriptor,
            part: take(stack),
        });
        true
    }

    /// Shares the last names of the current directory with an idle worker if that is faster here, or
    /// queues an evict helper for all of them.
    ///
    /// Returns the end of the names that are left for this worker.
    fn share_names(
        &mut self,
        stack: &mut DirStack<'_>,
        batch: &Arc<NameBatch>,
        begin: usize,
        end: usize,
        evict_helper: &mut Option<Arc<DeferredEvict>>,
    ) -> usize {
        if self.context.queue.is_over_limit() {
            *evict_helper = None;
        }
        let workers = self.context.queue.workers();
        let index = stack.levels.len() - 1;
        if workers < 2 || end - begin <= 2 * SHARED_NAMES || stack.depth(index) > MAX_SHARED_DEPTH {
            return end;
        }
        let shared = stack.shared.get(index);
        let shared = shared.map_or(0, |directory| directory.pending_parts());
        if shared == 0 && !self.context.queue.has_idle_worker() {
            return end;
        }
        if stack.file_system.benefits_from_deferred_evict {
            if shared > 0 || !self.remover.is_unrestricted() {
                return end;
            }
            let evict = DeferredEvict::new(batch, begin, end);
            if self.queue_part(stack, index, |_| Part::Evict(Arc::clone(&evict))) {
                *evict_helper = Some(evict);
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
        let rest = end - SHARED_NAMES;
        let part = Part::Names(Arc::clone(batch), rest..end);
        match self.queue_part(stack, index, |_| part) {
            true => rest,
            false => end,
        }
    }

    /// Runs as the helper of another worker.
    fn evict_inodes(&mut self, directory: BorrowedFd<'_>, evict: Arc<DeferredEvict>) {
        // The helper runs without a slot, so that the remover never waits for it.
        self.context.throttle.release_slot();
        // Its worker has no stack meanwhile, so the helper may take more than the stack would.
        let max_fds = (2 * self.context.open_dirs.own).min(MAX_EVICT_FDS);
        evict.run(&mut self.remover, directory, max_fds);
        self.context.throttle.acquire_slot();
    }

    /// Leaves the current directory, which is finished, and removes it from its parent.
    fn ascend(&mut self, stack: &mut DirStack<'_>) -> Outcome<()> {
        let index = stack.levels.len() - 1;
        let is_shared = index < stack.shared.len(); // then `finish_shared_dir` removes it
        let is_incomplete = stack.top().is_incomplete;
        let is_removed = !is_shared && !is_incomplete && !self.context.filters.are_active();
        self.context.throttle.admit(is_removed)?;
        if index > 0 {
            if let Err(error) = stack.reopen_parent(self.calls) {
                return self.abandon_path(stack, error);
            }
        }
        let (mut level, shared) = stack.pop();
        if let Some(directory) = shared {
            stack.drop_level_names(&level);
            let parent_fd = (index > 0).then(|| self.calls.duplicate(stack.descriptor()).ok());
            return self.finish_shared_dir(directory, level.descriptor, parent_fd.flatten());
        }
        let at = level.name_at;
        let descriptor = level.descriptor.take().expect("the last level is open");
        if is_incomplete {
            stack.mark_incomplete(index - 1);
        } else if is_removed {
            match self.remove_dir(stack.descriptor(), stack.names.name(at), &descriptor) {
                Ok(()) => (),
                Err(Errno::NOTEMPTY | Errno::EXIST)
                    if usize::from(level.rereads) < MAX_REREADS
                        && self.calls.seek(descriptor.as_fd(), 0).is_ok() =>
                {
                    level.rereads += 1;
                    level.has_more = true;
                    level.descriptor = Some(descriptor);
                    stack.restore(level);
                    return Ok(());
                }
                Err(error) => self.report_failure(stack, at, "remove", error),
            }
        }
        self.calls.close(descriptor);
        stack.drop_level_names(&level);
        Ok(())
    }

    /// Abandons the levels whose parent cannot be opened any more, up to one with an open descriptor.
    fn abandon_path(&mut self, stack: &mut DirStack<'_>, error: Errno) -> Outcome<()> {
        let index = stack.levels.len() - 2;
        (self.context.failures).report("open", &stack.path(index), error);
        loop {
            let (mut level, shared) = stack.pop();
            let descriptor = level.descriptor.take();
            match shared {
                Some(directory) => {
                    directory.mark_incomplete();
                    self.finish_shared_dir(directory, descriptor, None)?;
                }
                None => self.calls.close(descriptor),
            }
            stack.drop_level_names(&level);
            let Some(parent) = stack.levels.len().checked_sub(1) else {
                return Ok(());
            };
            stack.mark_incomplete(parent);
            if stack.levels[parent].descriptor.is_some() {
                return Ok(());
            }
        }
    }

    /// Finishes a part of a directory. The last part removes the directory, and so on upwards.
    ///
    /// `parent_fd` is the directory's parent if it is open.
    fn finish_shared_dir(
        &mut self,
        mut directory: Arc<SharedDir>,
        mut descriptor: Option<OwnedFd>,
        mut parent_fd: Option<OwnedFd>,
    ) -> Outcome<()> {
        while directory.finish_pending() {
            if directory.parent.is_none() {
                parent_fd = directory.target.replace_parent_fd(None);
            }
            if !directory.is_incomplete() && !self.context.filters.are_active() {
                let is_kept = directory.parent.is_none() && parent_fd.is_none();
                if !is_kept {
                    self.context.throttle.admit(true)?;
                }
                let removed = match &descriptor {
                    Some(opened) => self.remove_shared_dir(&directory, opened, &mut parent_fd),
                    None => Err(Errno::STALE),
                };
                match (removed, descriptor) {
                    (Err(Errno::NOTEMPTY | Errno::EXIST), Some(opened))
                        if directory.try_reread(MAX_REREADS) =>
                    {
                        if directory.parent.is_none() {
                            parent_fd = directory.target.replace_parent_fd(parent_fd);
                        }
                        self.calls.close(parent_fd);
                        return self.reread(directory, opened);
                    }
                    (removed, opened) => {
                        if let Err(error) = removed {
                            let operation = if is_kept { "empty" } else { "remove" };
                            self.report_dir(&directory, operation, error);
                        }
                        descriptor = opened;
                    }
                }
            }
            self.calls.close(descriptor.take());
            let Some((parent, _)) = &directory.parent else {
                break;
            };
            if directory.is_incomplete() {
                parent.mark_incomplete();
            }
            (descriptor, directory) = (parent_fd.take(), Arc::clone(parent));
        }
        self.calls.close(descriptor);
        self.calls.close(parent_fd);
        Ok(())
    }

    /// Removes a shared directory, whose parent is opened if it is not open. Checks only that a target
    /// that is kept is empty.
    fn remove_shared_dir(
        &mut self,
        directory: &SharedDir,
        opened: &OwnedFd,
        parent_fd: &mut Option<OwnedFd>,
    ) -> Result<()> {
        match (&directory.parent, parent_fd) {
            (None, None) => self.check_empty(opened.as_fd()),
            (None, Some(parent_fd)) => {
                self.remove_target(parent_fd.as_fd(), directory, opened.as_fd())
            }
            (Some((_, name)), Some(parent_fd)) => self.remove_dir(parent_fd.as_fd(), name, opened),
            (Some((parent, name)), parent_fd) => {
                let parent_fd = parent_fd.insert(self.open_parent(opened.as_fd(), parent)?);
                self.remove_dir(parent_fd.as_fd(), name, opened)
            }
        }
    }

    /// Removes a directory that should be empty. Succeeds, too, if another process has removed it.
    ///
    /// Fails with ESTALE if the directory was moved: new entries in it are outside the tree. Fails with
    /// ENOTEMPTY or EEXIST only if the name still refers to the directory.
    fn remove_dir(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        directory: &OwnedFd,
    ) -> Result<()> {
        self.remover.leave_removed_dir();
        let Err(error) = self.remover.remove_dir(parent, name) else {
            return Ok(());
        };
        let is_gone = error == Errno::NOENT || self.remover.has_vanished(parent, error);
        match error {
            _ if is_gone && self.is_removed(directory) => Ok(()),
            Errno::NOENT => Err(Errno::STALE),
            Errno::NOTEMPTY | Errno::EXIST if !self.has_name(directory, parent, name) => {
                Err(Errno::STALE)
            }
            _ => Err(error),
        }
    }

    /// Removes a target. Fails with ESTALE if another directory has its name now.
    fn remove_target(
        &mut self,
        parent: BorrowedFd<'_>,
        directory: &SharedDir,
        opened: BorrowedFd<'_>,
    ) -> Result<()> {
        let name = &directory.target.name;
        let status = self.calls.stat(parent, name)?;
        if DevIno::from_stat(&status) != directory.identity.dev_ino {
            return Err(Errno::STALE);
        }
        self.remover.leave_removed_dir();
        match self.remover.remove_dir(parent, name) {
            // Confinement refuses the removal before the file system detects entries that readdir
            // skipped.
            Err(error @ (Errno::ACCESS | Errno::ROFS | Errno::BUSY)) => {
                self.check_empty(opened).and(Err(error))
            }
            result => result,
        }
    }

    /// Fails with ENOTEMPTY if a target has entries of the share. No rmdir of the engine detects them
    /// in a kept target.
    fn check_empty(&mut self, directory: BorrowedFd<'_>) -> Result<()> {
        let filters = &self.context.filters;
        let mut has_names = false;
        self.calls.seek(directory, 0)?;
        while !has_names {
            let take = |name: &CStr, _, _| has_names |= filters.share_contains(name);
            match self.calls.read_names(directory, &mut self.buffer, take) {
                Ok(Some(_)) => (),
                Ok(None) => break,
                // The machine whose share was the last has removed the target.
                Err(Errno::NOENT | Errno::STALE) if filters.share.is_some() => break,
                Err(error) => return Err(error),
            }
        }
        match has_names {
            true => Err(Errno::NOTEMPTY),
            false => Ok(()),
        }
    }

    fn reread(&mut self, directory: Arc<SharedDir>, descriptor: OwnedFd) -> Outcome<()> {
        directory.add_pending();
        if let Err(error) = self.calls.seek(descriptor.as_fd(), 0) {
            self.report_dir(&directory, "read", error);
            return self.finish_shared_dir(directory, Some(descriptor), None);
        }
        self.context.queue.push(Task {
            directory,
            descriptor,
            part: Part::Tree,
        });
        Ok(())
    }

    fn open_parent(&self, child: BorrowedFd<'_>, parent: &SharedDir) -> Result<OwnedFd> {
        let file_system = parent.target.file_system;
        self.calls
            .open_ancestor(child, 1, &parent.identity, |ancestor| {
                Ok(file_system.identify(ancestor, self.calls)?.0)
            })
    }

    /// Returns whether a directory without its name was removed, and not moved.
    fn is_removed(&self, directory: &OwnedFd) -> bool {
        let status = self.calls.fstat(directory.as_fd());
        status.map_or(true, |status| status.st_nlink == 0)
    }

    /// Returns whether a name still refers to a directory.
    ///
    /// If not, the directory was moved and replaced, and new entries in it are outside the tree.
    fn has_name(&self, directory: &OwnedFd, parent: BorrowedFd<'_>, name: &CStr) -> bool {
        let named = self.calls.stat(parent, name);
        let open = self.calls.fstat(directory.as_fd());
        matches!((named, open), (Ok(named), Ok(open)) if DevIno::from_stat(&named) == DevIno::from_stat(&open))
    }

    /// Reports a failure on a name in the current directory.
    fn report_failure(&self, stack: &mut DirStack<'_>, at: u32, operation: &str, error: Errno) {
        let index = stack.levels.len() - 1;
        let path = join_path(stack.path(index), stack.names.name(at));
        self.context.failures.report(operation, &path, error);
        stack.mark_incomplete(index);
    }

    /// Reports a failure on a shared directory.
    fn report_dir(&self, directory: &SharedDir, operation: &str, error: Errno) {
        let path = directory.path();
        self.context.failures.report(operation, &path, error);
        directory.mark_incomplete();
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

fn join_path(mut path: Vec<u8>, name: &CStr) -> Vec<u8> {
    path.push(b'/');
    path.extend_from_slice(name.to_bytes());
    path
}
