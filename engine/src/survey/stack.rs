//! The directories of one walker that have pending subdirectories, from the top of the tree down.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::StatxFlags;

use super::dir_progress::DirProgress;
use super::Root;
use crate::identity::DevIno;
use crate::names::NameStack;
use crate::syscalls::Syscalls;

/// Limit of names shared at once, some milliseconds of work.
const MAX_SHARED_NAMES: usize = 1_000;

/// A directory that is emitted already.
#[derive(Clone, Debug)]
pub struct Dir {
    /// Index of its root.
    pub root: usize,
    /// `None` only on a stack.
    pub descriptor: Option<Arc<OwnedFd>>,
    pub number: u64,
    pub inode: u64,
    /// Levels below the root.
    pub depth: u64,
}

impl Dir {
    /// Returns the descriptor of a directory that is being read, which is open.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_ref().expect("it is open").as_fd()
    }

    /// Opens the directory again; `None` if it cannot be reached.
    ///
    /// Ascends by `..` from a descendant, which may have been moved elsewhere.
    fn reopen(&self, calls: &Syscalls, descendant: &Self, root: &Root) -> Option<Arc<OwnedFd>> {
        if self.depth == 0 {
            return Some(Arc::clone(&root.descriptor));
        }
        let (device, inode) = (root.device, self.inode);
        let levels = descendant.depth - self.depth;
        let expected = DevIno { device, inode };
        let opened = calls.open_ancestor(descendant.fd(), levels, &expected, |ancestor| {
            let status = calls.statx_fd(ancestor, StatxFlags::INO)?;
            Ok(DevIno::from_statx(&status))
        });
        opened.ok().map(Arc::new)
    }
}

/// A directory on the stack. Its pending names are a range of the stack's names.
#[derive(Debug)]
struct Level {
    dir: Dir,
    start: u32,
    end: u32,
    /// Set if the directory was not read to its end.
    unfinished: Option<Box<DirProgress>>,
}

impl Level {
    fn has_names(&self) -> bool {
        self.start < self.end
    }

    fn is_finished(&self) -> bool {
        !self.has_names() && self.unfinished.is_none()
    }
}

/// The next work in a directory.
pub enum Next {
    /// Read this subdirectory.
    Enter(CString),
    /// Read the rest of the directory itself.
    Resume(Box<DirProgress>),
}

/// The levels, with the highest ones possibly closed, and all pending names.
///
/// The names of a level follow those of the levels above it in the tree. The names after those of the
/// top level belong to the directory that is being read.
#[derive(Default)]
pub struct Stack {
    levels: Vec<Level>,
    names: NameStack,
    /// Levels without a descriptor, counted from the root.
    closed_levels: usize,
    max_open: usize,
}

impl Stack {
    pub fn new(max_open: usize) -> Self {
        Self {
            max_open,
            ..Self::default()
        }
    }

    /// Returns the number of levels.
    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Takes the last pending name of the top level; after all of them the unread rest.
    pub fn take_next(&mut self) -> Option<(Dir, Next)> {
        let level = self.levels.last_mut()?;
        let dir = level.dir.clone();
        let next = match level.has_names() {
            true => {
                level.end = self
                    .names
                    .last()
                    .expect("the names of the top are the last");
                let name = self.names.name(level.end).to_owned();
                self.names.truncate(level.end);
                Next::Enter(name)
            }
            false => Next::Resume(level.unfinished.take().expect("it is not finished")),
        };
        if level.is_finished() {
            self.levels.pop();
            self.closed_levels = self.closed_levels.min(self.levels.len());
            self.names.truncate(self.end()); // also drops the names that were shared
        }
        Some((dir, next))
    }

    /// Returns the end of the names of all levels.
    fn end(&self) -> u32 {
        self.levels.last().map_or(0, |level| level.end)
    }

    /// Adds a pending subdirectory of the directory that is being read.
    pub fn push_name(&mut self, name: &CStr) {
        self.names.push(name);
    }

    /// Returns the bytes of pending names of the directory that is being read.
    pub fn pending_bytes(&self) -> usize {
        self.names.bytes() - self.end() as usize
    }

    /// Pushes the directory that was being read; returns it if nothing of it is pending.
    pub fn push(&mut self, dir: Dir, unfinished: Option<Box<DirProgress>>) -> Result<(), Dir> {
        let level = Level {
            dir,
            start: self.end(),
            end: self.names.end(),
            unfinished,
        };
        if level.is_finished() {
            return Err(level.dir);
        }
        self.levels.push(level);
        if self.levels.len() - self.closed_levels > self.max_open {
            self.levels[self.closed_levels].dir.descriptor = None;
            self.closed_levels += 1;
        }
        Ok(())
    }

    /// Pushes a directory with these pending subdirectories.
    pub fn push_pending(&mut self, dir: Dir, names: &[u8]) {
        self.names.append(names);
        let _ = self.push(dir, None);
    }

    /// Opens the top level if it is closed; returns whether it can be reached from a descendant.
    pub fn reopen_top(&mut self, calls: &Syscalls, descendant: &Dir, root: &Root) -> bool {
        let number = self.levels.len();
        let top = self.levels.last_mut();
        let Some(top) = top.filter(|top| top.dir.descriptor.is_none()) else {
            return true;
        };
        let Some(descriptor) = top.dir.reopen(calls, descendant, root) else {
            return false;
        };
        let cookie = top.unfinished.as_ref().map(|progress| progress.cookie);
        if cookie.is_some_and(|cookie| calls.seek(descriptor.as_fd(), cookie).is_err()) {
            return false;
        }
        top.dir.descriptor = Some(descriptor);
        self.closed_levels = number - 1;
        true
    }

    /// Takes half of the highest pending names whose directory is open, because trees are largest there.
    ///
    /// The last name of all stays: a chain would only move between walkers.
    pub fn share(&mut self) -> Option<(Dir, Box<[u8]>)> {
        let mut open = self.closed_levels..self.levels.len();
        let index = open.find(|&at| self.levels[at].has_names())?;
        let is_top = index + 1 == self.levels.len();
        let level = &self.levels[index];
        let (from, end) = (level.start, level.end);
        let after = |at: &u32| Some(self.names.next_after(*at)).filter(|next| *next < end);
        let number = std::iter::successors(Some(from), after).count();
        let shared = if is_top {
            number / 2
        } else {
            number.div_ceil(2)
        };
        if shared == 0 {
            return None;
        }
        let (names, to) = self.names.copy(from, shared.min(MAX_SHARED_NAMES));
        let dir = level.dir.clone();
        self.levels[index].start = to;
        if self.levels[index].is_finished() {
            self.levels.remove(index);
        }
        Some((dir, names))
    }
}
