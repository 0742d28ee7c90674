//! The directories of one walker that have pending subdirectories, from the top of the tree down.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::StatxFlags;

use super::dir_reader::DirProgress;
use super::Root;
use crate::identity::DevIno;
use crate::syscalls::Syscalls;

/// Limit of names shared at once: about 1,000 names, some milliseconds of work.
const MAX_SHARED_BYTES: usize = 16 << 10;

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
    start: usize,
    end: usize,
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
/// The names of a level follow those of the levels above it in the tree, each with its NUL. The names
/// after those of the top level belong to the directory that is being read.
#[derive(Debug, Default)]
pub struct Stack {
    levels: Vec<Level>,
    names: Vec<u8>,
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
        let pending = &self.names[level.start..level.end - 1];
        let begin = pending.iter().rposition(|byte| *byte == 0);
        let begin = begin.map_or(level.start, |nul| level.start + nul + 1);
        let name = CStr::from_bytes_with_nul(&self.names[begin..level.end]);
        let name = name.expect("each name ends in a NUL").to_owned();
        level.end = begin;
        self.names.truncate(begin);
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
    fn end(&self) -> usize {
        self.levels.last().map_or(0, |level| level.end)
    }

    /// Adds a pending subdirectory of the directory that is being read.
    pub fn push_name(&mut self, name: &CStr) {
        self.names.extend_from_slice(name.to_bytes_with_nul());
    }

    /// Returns the bytes of pending names of the directory that is being read.
    pub fn pending_bytes(&self) -> usize {
        self.names.len() - self.end()
    }

    /// Pushes the directory that was being read; returns it if nothing of it is pending.
    pub fn push(
        &mut self,
        dir: OpenDir,
        unfinished: Option<Box<DirProgress>>,
    ) -> Result<(), OpenDir> {
        let (start, end) = (self.end(), self.names.len());
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
        self.names.extend_from_slice(names);
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
    pub fn share(&mut self, root: usize) -> Option<(OpenDir, Vec<u8>)> {
        let open = self.closed_levels..self.levels.len();
        let index = open.clone().find(|&at| self.levels[at].has_names())?;
        let is_top = index + 1 == self.levels.len();
        let level = &mut self.levels[index];
        let pending = &self.names[level.start..level.end];
        let cut = half(pending).or((!is_top).then_some(pending.len()))?;
        let shared = pending[..cut].to_vec();
        let dir = level.open_dir(root)?;
        level.start += cut;
        if !level.has_names() && level.unfinished.is_none() {
            self.levels.remove(index);
        }
        Some((dir, shared))
    }
}

/// Returns the end of about half of the names; `None` if there is only one.
fn half(names: &[u8]) -> Option<usize> {
    let middle = (names.len() / 2).clamp(1, MAX_SHARED_BYTES) - 1;
    let cut = middle + names[middle..].iter().position(|byte| *byte == 0)? + 1;
    if cut < names.len() {
        return Some(cut);
    }
    let before = names[..cut - 1].iter().rposition(|byte| *byte == 0)?;
    Some(before + 1)
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn about_half_of_the_names_is_shared_and_never_all() {
        assert_eq!(half(b"alone\0"), None);
        assert_eq!(half(b"a\0b\0"), Some(2));
        assert_eq!(half(b"a\0long name\0"), Some(2));
        assert_eq!(half(b"long name\0b\0"), Some(10));
        assert_eq!(half(b"a\0b\0c\0d\0"), Some(4));
        let many = b"name\0".repeat(100_000);
        let shared = half(&many).unwrap();
        assert_eq!(shared % 5, 0);
        assert!((16 << 10..(16 << 10) + 5).contains(&shared));
    }
}
