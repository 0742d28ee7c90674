//! One worker: empties directories, gives away what others can do, removes what is empty.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, StatxFlags};
use rustix::io::{Errno, Result};

use super::brake::Turn;
use super::crew::Task;
use super::directory::Directory;
use super::hands::{Failure, Hands, Stopped, Tally};
use super::names::Chunk;
use super::splitting::Trial;
use super::walk::Walk;
use super::Run;
use crate::calls::Calls;

/// What getdents64 fills at once: names enough that the calls do not count.
const BUFFER_BYTES: usize = 256 << 10;

/// Names all workers may hold of directories that are not read to their end; some 30 bytes each.
const NAMES_IN_MEMORY: usize = 1_000_000;

/// Names a worker may hold in any case.
const NAMES_OF_EACH: usize = 32_768;

/// After so many removals a worker looks whether somebody waits for work.
const BATCH: usize = 64;

/// From here on the order of inodes is worth sorting names.
const SORT_FROM: usize = 256;

/// A worker, for the life of its thread.
pub struct Worker<'run> {
    pub(super) run: &'run Run,
    pub(super) hands: Hands<'run>,
    pub(super) calls: &'run Calls,
    most_open: usize,
    buffer: Vec<MaybeUninit<u8>>,
    chunk: Arc<Chunk>,
    pub(super) trial: Option<(Arc<Directory>, Trial)>,
}

pub type Outcome<T> = std::result::Result<T, Stopped>;

impl<'run> Worker<'run> {
    pub fn new(run: &'run Run, tally: &'run Tally, most_open: usize) -> Self {
        Self {
            run,
            hands: Hands {
                brake: &run.brake,
                filters: &run.filters,
                tally,
                turn: Turn::default(),
            },
            calls: &tally.calls,
            most_open,
            buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES],
            chunk: Arc::default(),
            trial: None,
        }
    }

    /// Works until nothing is left, or everything is to end.
    pub fn work(mut self) {
        let brake = &self.run.brake;
        brake.join(&mut self.hands.turn);
        loop {
            let task = self.run.crew.take_now().or_else(|| {
                brake.leave(&mut self.hands.turn);
                let task = self.run.crew.take();
                if task.is_some() {
                    brake.join(&mut self.hands.turn);
                }
                task
            });
            let Some(task) = task else {
                return;
            };
            let outcome = match task {
                Task::Whole(directory, descriptor) => {
                    self.walk(Walk::begin(directory, descriptor, self.most_open))
                }
                Task::Below(directory, descriptor, names, number) => {
                    let mut walk = Walk::begin(directory, descriptor, self.most_open);
                    walk.names.append(&names);
                    walk.top().waiting = number;
                    walk.top().has_more = false;
                    self.walk(walk)
                }
                Task::Names(directory, descriptor, chunk, range) => {
                    self.remove_slice(directory, descriptor, &chunk, range)
                }
            };
            if outcome.is_err() {
                brake.leave(&mut self.hands.turn);
                return;
            }
        }
    }

    fn walk(&mut self, mut walk: Walk) -> Outcome<()> {
        while !walk.levels.is_empty() {
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
        self.hands.wait()?;
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
                let mut chunk = Chunk::default();
                if self.run.filters.match_name(walk.names.name(at)) {
                    chunk.add_file(walk.names.name(at), 0);
                }
                self.remove_all(walk, &Arc::new(chunk))?;
            }
            Errno::XDEV => self.failed_below(walk, at, "enter", why),
            _ if self.run.filters.are_active() => self.failed_below(walk, at, "open", why),
            // One that may not be read may be empty all the same.
            _ => match self.calls.rmdir(walk.descriptor(), walk.names.name(at)) {
                Ok(()) => self.hands.tally.add_directory(),
                Err(Errno::NOENT) => (),
                Err(_) => self.failed_below(walk, at, "open", why),
            },
        }
        walk.forget_name(at);
        Ok(())
    }

    /// Reads names of the level it stands in, and removes those that are not directories'.
    fn read(&mut self, walk: &mut Walk) -> Outcome<()> {
        let index = walk.levels.len() - 1;
        let mut cookie = None;
        let mut unknown = Vec::new();
        let run = self.run;
        let chunk = empty(&mut self.chunk);
        chunk.count_in(&run.names_in_memory);
        let is_at_end =
            loop {
                let held = run.names_in_memory.load(Relaxed);
                if chunk.len() >= NAMES_OF_EACH && held >= NAMES_IN_MEMORY {
                    break false;
                }
                let read = self.calls.read_names(
                    walk.descriptor(),
                    &mut self.buffer,
                    |name, kind, inode| match kind {
                        FileType::Directory => chunk.add_directory(name, inode),
                        FileType::Unknown => unknown.push((name.to_owned(), inode)),
                        _ if run.filters.match_name(name) => chunk.add_file(name, inode),
                        _ => (),
                    },
                );
                match read {
                    Ok(Some(behind)) => cookie = Some(behind),
                    Ok(None) => break true,
                    Err(Errno::NOENT) => break true, // it was removed
                    Err(why) => {
                        run.failures.tell("read", &walk.path(index), why);
                        walk.spoil(index);
                        break true;
                    }
                }
                chunk.count_in(&run.names_in_memory);
            };
        for (name, inode) in unknown {
            match kind_of(self.calls, walk.descriptor(), &name) {
                Ok(FileType::Directory) => chunk.add_directory(&name, inode),
                Ok(_) if run.filters.match_name(&name) => chunk.add_file(&name, inode),
                Ok(_) | Err(Errno::NOENT) => (),
                Err(why) => {
                    let mut path = walk.path(index);
                    path.push(b'/');
                    path.extend_from_slice(name.to_bytes());
                    run.failures.tell("stat", &path, why);
                    walk.spoil(index);
                }
            }
        }
        if chunk.len() >= SORT_FROM && !walk.shared[0].target().is_in_memory {
            chunk.sort();
        }
        walk.note_read(if is_at_end { None } else { cookie });
        walk.begin_names();
        for &named in chunk.directories.iter().rev() {
            walk.add_name(chunk.name(named));
        }
        if chunk.files.is_empty() {
            return Ok(());
        }
        let chunk = Arc::clone(&self.chunk);
        self.remove_all(walk, &chunk)
    }

    /// Removes the names of a chunk in the level it stands in; others may help.
    fn remove_all(&mut self, walk: &mut Walk, chunk: &Arc<Chunk>) -> Outcome<()> {
        let index = walk.levels.len() - 1;
        let mut failures = Vec::new();
        let (mut begin, mut end) = (0, chunk.files.len());
        while begin < end {
            let next = (begin + BATCH).min(end);
            let removed =
                self.hands
                    .remove(walk.descriptor(), chunk, begin..next, &mut failures)?;
            if let Some(directory) = walk.shared.get(index) {
                directory.removed.fetch_add(removed, Relaxed);
            }
            if !failures.is_empty() {
                self.tell_all(&mut failures, chunk, &walk.path(index));
                walk.spoil(index);
            }
            begin = next;
            self.give_directories(walk);
            end = self.give_names(walk, chunk, begin, end);
        }
        Ok(())
    }

    fn remove_slice(
        &mut self,
        directory: Arc<Directory>,
        descriptor: OwnedFd,
        chunk: &Arc<Chunk>,
        range: Range<usize>,
    ) -> Outcome<()> {
        let mut failures = Vec::new();
        for begin in range.clone().step_by(BATCH) {
            let batch = begin..(begin + BATCH).min(range.end);
            let removed = self
                .hands
                .remove(descriptor.as_fd(), chunk, batch, &mut failures)?;
            directory.removed.fetch_add(removed, Relaxed);
        }
        if !failures.is_empty() {
            self.tell_all(&mut failures, chunk, &directory.path());
            directory.spoil();
        }
        self.release(directory, Some(descriptor))
    }

    /// Tells of a name in the level it stands in.
    pub(super) fn failed_below(&self, walk: &mut Walk, at: u32, operation: &str, why: Errno) {
        let index = walk.levels.len() - 1;
        let mut path = walk.path(index);
        path.push(b'/');
        path.extend_from_slice(walk.names.name(at).to_bytes());
        self.run.failures.tell(operation, &path, why);
        walk.spoil(index);
    }

    fn tell_all(&self, failures: &mut Vec<Failure>, chunk: &Chunk, path: &[u8]) {
        for failure in failures.drain(..) {
            let mut whole = path.to_vec();
            whole.push(b'/');
            whole.extend_from_slice(chunk.name(failure.named).to_bytes());
            self.run
                .failures
                .tell(failure.operation, &whole, failure.error);
        }
    }
}

/// An empty chunk in this place: the old one if nobody else has it and it is small.
fn empty(chunk: &mut Arc<Chunk>) -> &mut Chunk {
    let is_reusable = Arc::get_mut(chunk).is_some_and(|one| one.len() < NAMES_OF_EACH);
    if !is_reusable {
        *chunk = Arc::default();
    }
    let chunk = Arc::get_mut(chunk).expect("nobody else has it");
    chunk.clear();
    chunk
}

fn kind_of(calls: &Calls, directory: BorrowedFd<'_>, name: &CStr) -> Result<FileType> {
    let status = calls.statx(directory, name, StatxFlags::TYPE)?;
    Ok(FileType::from_raw_mode(u32::from(status.stx_mode)))
}
