//! The directories of one walker that have pending subdirectories, from the top of the tree down.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::StatxFlags;

use super::dir_progress::DirProgress;
use super::Root;
use crate::identity::DevIno;
use crate::names::NameStack;
use crate::syscalls::Syscalls;

/// Limit of names shared at once, some milliseconds of work.
const MAX_SHARED_NAMES: usize = 1_000;

/// An open directory that is emitted already.
#[derive(Clone, Debug)]
pub struct OpenDir {
    /// Index of its root.
    pub root: usize,
    pub descriptor: Arc<OwnedFd>,
    pub number: u64,
    pub inode: u64,
    /// Levels below the root.
    pub depth: u64,
}

/// A directory on the stack. Its pending names are a range of the stack's names.
#[derive(Debug)]
pub struct Level {
    descriptor: Option<Arc<OwnedFd>>,
    pub number: u64,
    inode: u64,
    depth: u64,
    start: u32,
    end: u32,
    /// Set if the directory was not read to its end.
    pub unfinished: Option<Box<DirProgress>>,
}

impl Level {
    /// Returns the directory; `None` if it is closed.
    pub fn open_dir(&self, root: usize) -> Option<OpenDir> {
        Some(OpenDir {
            root,
            descriptor: Arc::clone(self.descriptor.as_ref()?),
            number: self.number,
            inode: self.inode,
            depth: self.depth,
        })
    }

    fn has_names(&self) -> bool {
        self.start < self.end
    }

    /// Opens the directory again; `None` if it cannot be reached.
    ///
    /// Ascends by `..` from a descendant, which may have been moved elsewhere.
    pub fn reopen(
        &self,
        calls: &Syscalls,
        descendant: &OpenDir,
        root: &Root,
    ) -> Option<Arc<OwnedFd>> {
        let descriptor = if self.depth == 0 {
            Arc::clone(&root.descriptor)
        } else {
            let (device, inode) = (root.device, self.inode);
            let opened = calls.open_ancestor(
                descendant.descriptor.as_fd(),
                descendant.depth - self.depth,
                &DevIno { device, inode },
                |ancestor| {
                    let status = calls.statx_fd(ancestor, StatxFlags::INO)?;
                    Ok(DevIno::from_statx(&status))
                },
            );
            Arc::new(opened.ok()?)
        };
        if let Some(progress) = &self.unfinished {
            calls.seek(descriptor.as_fd(), progress.cookie).ok()?;
        }
        Some(descriptor)
    }
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

    /// Pops the top level. The caller restores it or reads its rest.
    pub fn pop(&mut self) -> Option<Level> {
        let level = self.levels.pop()?;
        self.closed_levels = self.closed_levels.min(self.levels.len());
        self.names.truncate(level.end);
        Some(level)
    }

    /// Takes the last pending name of a level that was just popped.
    ///
    /// The last one also drops the names in front of it that were shared.
    pub fn take_name(&mut self, level: &mut Level) -> Option<CString> {
        if !level.has_names() {
            self.names.truncate(self.end());
            return None;
        }
        level.end = self.names.last()?;
        let name = self.names.name(level.end).to_owned();
        self.names.truncate(level.end);
        Some(name)
    }

    /// Restores a popped level, unless it is finished.
    pub fn restore(&mut self, level: Level) {
        if level.has_names() || level.unfinished.is_some() {
            self.levels.push(level);
        } else {
            self.names.truncate(self.end());
        }
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
    pub fn push(
        &mut self,
        dir: OpenDir,
        unfinished: Option<Box<DirProgress>>,
    ) -> Result<(), OpenDir> {
        let (start, end) = (self.end(), self.names.end());
        if start == end && unfinished.is_none() {
            return Err(dir);
        }
        self.levels.push(Level {
            descriptor: Some(dir.descriptor),
            number: dir.number,
            inode: dir.inode,
            depth: dir.depth,
            start,
            end,
            unfinished,
        });
        if self.levels.len() - self.closed_levels > self.max_open {
            self.levels[self.closed_levels].descriptor = None;
            self.closed_levels += 1;
        }
        Ok(())
    }

    /// Pushes a directory with these pending subdirectories.
    pub fn push_pending(&mut self, dir: OpenDir, names: &[u8]) {
        self.names.append(names);
        let _ = self.push(dir, None);
    }

    /// Returns the top level if it is closed.
    pub fn closed_top(&self) -> Option<&Level> {
        self.levels
            .last()
            .filter(|level| level.descriptor.is_none())
    }

    pub fn reopen_top(&mut self, descriptor: Arc<OwnedFd>) {
        if let Some(top) = self.levels.last_mut() {
            top.descriptor = Some(descriptor);
            self.closed_levels = self.levels.len() - 1;
        }
    }

    /// Takes half of the highest pending names whose directory is open, because trees are largest there.
    ///
    /// The last name of all stays: a chain would only move between walkers.
    pub fn share(&mut self, root: usize) -> Option<(OpenDir, Box<[u8]>)> {
        let open = self.closed_levels..self.levels.len();
        let index = open.clone().find(|&at| self.levels[at].has_names())?;
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
        let next_after = |at, _| self.names.next_after(at);
        let to = (0..shared.min(MAX_SHARED_NAMES)).fold(from, next_after);
        let dir = level.open_dir(root)?;
        let names = self.names.copy(from, to);
        self.levels[index].start = to;
        if to == end && self.levels[index].unfinished.is_none() {
            self.levels.remove(index);
        }
        Some((dir, names))
    }
}
