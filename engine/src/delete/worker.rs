//! One worker: empties directories, gives away what others can do, removes what is empty.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::FileType;
use rustix::io::{Errno, Result};

use super::deferred_evict::EvictHelper;
use super::dir_splitting::SplitTrial;
use super::dir_stack::Walk;
use super::names::NameBatch;
use super::remover::{Cancelled, Failure, Remover, Tally};
use super::shared_dir::Directory;
use super::work_queue::Task;
use super::Run;
use crate::syscalls::Calls;

/// What getdents64 fills at once: names enough that the calls do not count.
const BUFFER_BYTES: usize = 256 << 10;

/// What the names may take that all workers have read and not removed yet: of a directory of more
/// (half a million names of ten letters) a part is read and removed, and then the next one. The
/// allocator holds twice as much, for what grows and what was given back in between.
const MOST_BYTES: usize = 16 << 20;

/// What a worker may hold in any case.
const BYTES_OF_EACH: usize = 512 << 10;

/// Where the names of directories that wait on the way down take so much, each further level adds
/// only little to them, however wide it is.
const CROWDED_BYTES: usize = 48 << 20;
const LITTLE_BYTES: usize = 8 << 10;

/// After so many removals a worker looks whether somebody waits for work.
const BATCH: usize = 64;

/// A worker, for the life of its thread.
pub struct Worker<'run> {
    pub(super) run: &'run Run,
    pub(super) remover: Remover<'run>,
    pub(super) calls: &'run Calls,
    pub(super) max_open: usize,
    buffer: Vec<MaybeUninit<u8>>,
    batch: Arc<NameBatch>,
    pub(super) trial: Option<(Arc<Directory>, SplitTrial<'run>)>,
}

pub type Outcome<T> = std::result::Result<T, Cancelled>;

impl<'run> Worker<'run> {
    pub fn new(run: &'run Run, tally: &'run Tally, max_open: usize) -> Self {
        Self {
            run,
            remover: Remover::new(&run.throttle, &run.filters, tally),
            calls: &tally.calls,
            max_open,
            buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES],
            batch: Arc::default(),
            trial: None,
        }
    }

    /// Works until nothing is left, or everything is to end.
    pub fn work(mut self) {
        let (throttle, queue) = (&self.run.throttle, &self.run.queue);
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
                    self.walk(Walk::begin(directory, descriptor, self.max_open))
                }
                Task::Subdirs(directory, descriptor, names, number) => {
                    let mut walk = Walk::begin(directory, descriptor, self.max_open);
                    walk.names.append(&names);
                    walk.top().waiting = number;
                    walk.top().has_more = false;
                    self.walk(walk)
                }
                Task::Names(directory, descriptor, batch, range) => {
                    self.remove_slice(directory, descriptor, &batch, range)
                }
                Task::Evict(directory, descriptor, evict) => {
                    self.evict_inodes(directory, descriptor, &evict)
                }
            };
            self.trial = None;
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

    fn walk(&mut self, mut walk: Walk) -> Outcome<()> {
        while !walk.levels.is_empty() {
            self.forget_other_trial(&walk);
            self.give_directories(&mut walk);
            let top = walk.top();
            if top.waiting > 0 {
                self.go_down(&mut walk)?;
            } else if top.has_more {
                self.read(&mut walk)?;
            } else {
                self.go_up(&mut walk)?;
            }
        }
        Ok(())
    }

    /// Opens the next directory that waits, to be read next; or removes what stands there.
    fn go_down(&mut self, walk: &mut Walk) -> Outcome<()> {
        self.remover.wait()?;
        let at = walk.next_name();
        let opened = walk
            .open(at, self.calls)
            .and_then(|descriptor| walk.enter(at, descriptor, self.calls));
        let why = match opened {
            Ok(()) => return Ok(()),
            Err(why) => why,
        };
        match why {
            Errno::NOENT => (),
            // It was a directory when its name was read.
            Errno::NOTDIR | Errno::LOOP => {
                let mut batch = NameBatch::default();
                if self.run.filters.match_name(walk.names.name(at)) {
                    batch.add_file(walk.names.name(at), 0);
                }
                self.remove_all(walk, &Arc::new(batch))?;
            }
            Errno::XDEV => self.failed_below(walk, at, "open", why),
            _ if self.run.filters.are_active() => self.failed_below(walk, at, "open", why),
            // One that may not be read may be empty all the same.
            _ => {
                self.remover.wait_to_remove()?;
                match self.calls.rmdir(walk.descriptor(), walk.names.name(at)) {
                    Ok(()) => self.remover.tally.add_directory(),
                    Err(Errno::NOENT) => (),
                    Err(_) => self.failed_below(walk, at, "open", why),
                }
            }
        }
        walk.forget_name(at);
        Ok(())
    }

    /// Reads names of the level it stands in, and removes those that are not directories'.
    fn read(&mut self, walk: &mut Walk) -> Outcome<()> {
        let cookie = self.read_batch(walk)?;
        walk.note_read(cookie);
        walk.begin_names();
        for &name_ref in self.batch.directories.iter().rev() {
            walk.add_name(self.batch.name(name_ref));
        }
        if self.batch.files.is_empty() {
            return Ok(());
        }
        let batch = Arc::clone(&self.batch);
        self.remove_all(walk, &batch)
    }

    /// Reads as many names as may be held; returns where the next ones begin, if there are more.
    fn read_batch(&mut self, walk: &mut Walk) -> Outcome<Option<u64>> {
        let (index, run) = (walk.levels.len() - 1, self.run);
        let batch = empty(&mut self.batch);
        let mut cookie = None;
        loop {
            self.remover.wait()?;
            let held = run.bytes_in_memory.load(Relaxed) + walk.names.bytes();
            let is_crowded = held >= CROWDED_BYTES;
            let is_enough = if is_crowded { 1 } else { BYTES_OF_EACH };
            if batch.bytes() >= is_enough && held >= MOST_BYTES {
                break;
            }
            let room = if is_crowded {
                LITTLE_BYTES
            } else {
                BUFFER_BYTES
            };
            let buffer = &mut self.buffer[..room];
            let take = |name: &CStr, kind, inode| match kind {
                FileType::Directory => batch.add_directory(name, inode),
                FileType::Unknown => batch.add_unknown(name, inode),
                _ if run.filters.match_name(name) => batch.add_file(name, inode),
                _ => (),
            };
            match self.calls.read_names(walk.descriptor(), buffer, take) {
                Ok(Some(behind)) => cookie = Some(behind),
                Ok(None) | Err(Errno::NOENT) => cookie = None, // it may have been removed
                Err(why) => {
                    run.failures.tell("read", &walk.path(index), why);
                    walk.spoil(index);
                    cookie = None;
                }
            }
            batch.update_memory_count(&run.bytes_in_memory);
            if cookie.is_none() {
                break;
            }
        }
        for name_ref in std::mem::take(&mut batch.unknown) {
            self.remover.wait()?;
            let name = batch.name(name_ref);
            match kind_of(self.calls, walk.descriptor(), name) {
                Ok(FileType::Directory) => batch.directories.push(name_ref),
                Ok(_) if run.filters.match_name(name) => batch.files.push(name_ref),
                Ok(_) | Err(Errno::NOENT) => (),
                Err(why) => {
                    let path = below(walk.path(index), name);
                    run.failures.tell("stat", &path, why);
                    walk.spoil(index);
                }
            }
        }
        if !walk.file_system.is_in_memory() {
            batch.sort();
        }
        Ok(cookie)
    }

    /// Removes the names of a batch in the level it stands in; others may help.
    fn remove_all(&mut self, walk: &mut Walk, batch: &Arc<NameBatch>) -> Outcome<()> {
        let index = walk.levels.len() - 1;
        let mut failures = Vec::new();
        let (mut begin, mut end) = (0, batch.files.len());
        let mut evict_helper = EvictHelper::none();
        let cwd = self.remover.enter_dir(walk.descriptor());
        while begin < end {
            let part = begin..(begin + BATCH).min(end);
            let next = part.end;
            let remover = &mut self.remover;
            let (here, progress) = (walk.descriptor(), evict_helper.progress());
            let removed = remover.remove_names(here, cwd, batch, part, progress, &mut failures);
            if !failures.is_empty() {
                self.tell_all(&mut failures, batch, &walk.path(index));
                walk.spoil(index);
            }
            let removed = removed?;
            if let Some(directory) = walk.shared.get(index) {
                directory.removed.fetch_add(removed, Relaxed);
            }
            begin = next;
            self.give_directories(walk);
            end = self.give_names(walk, batch, begin, end, &mut evict_helper);
        }
        Ok(())
    }

    fn remove_slice(
        &mut self,
        directory: Arc<Directory>,
        descriptor: OwnedFd,
        batch: &Arc<NameBatch>,
        range: Range<usize>,
    ) -> Outcome<()> {
        let mut failures = Vec::new();
        let cwd = self.remover.enter_dir(descriptor.as_fd());
        for begin in range.clone().step_by(BATCH) {
            let part = begin..(begin + BATCH).min(range.end);
            let remover = &mut self.remover;
            let here = descriptor.as_fd();
            let removed = remover.remove_names(here, cwd, batch, part, None, &mut failures);
            if !failures.is_empty() {
                self.tell_all(&mut failures, batch, &directory.path());
                directory.spoil();
            }
            directory.removed.fetch_add(removed?, Relaxed);
        }
        self.release(directory, Some(descriptor))
    }

    /// Tells of a name in the level it stands in.
    pub(super) fn failed_below(&self, walk: &mut Walk, at: u32, operation: &str, why: Errno) {
        let index = walk.levels.len() - 1;
        let path = below(walk.path(index), walk.names.name(at));
        self.run.failures.tell(operation, &path, why);
        walk.spoil(index);
    }

    fn tell_all(&self, failures: &mut Vec<Failure>, batch: &NameBatch, path: &[u8]) {
        for failure in failures.drain(..) {
            let path = below(path.to_vec(), batch.name(failure.name_ref));
            self.run
                .failures
                .tell(failure.operation, &path, failure.error);
        }
    }
}

/// An empty batch in this place: the old one if nobody else has it and it is small.
fn empty(batch: &mut Arc<NameBatch>) -> &mut NameBatch {
    let is_reusable = Arc::get_mut(batch).is_some_and(|one| one.bytes() < BYTES_OF_EACH);
    if !is_reusable {
        *batch = Arc::default();
    }
    let batch = Arc::get_mut(batch).expect("nobody else has it");
    batch.clear();
    batch
}

fn kind_of(calls: &Calls, directory: BorrowedFd<'_>, name: &CStr) -> Result<FileType> {
    let status = calls.stat(directory, name)?;
    Ok(FileType::from_raw_mode(status.st_mode))
}

/// The path of a name in a directory.
fn below(mut path: Vec<u8>, name: &CStr) -> Vec<u8> {
    path.push(b'/');
    path.extend_from_slice(name.to_bytes());
    path
}
