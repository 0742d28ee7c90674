//! The directories of one walker whose subdirectories wait, from the top of the tree down.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::StatxFlags;

use super::context::Root;
use super::dir_reader::Reading;
use super::pool::Place;
use super::tally::device_of;
use crate::syscalls::Calls;

/// About 1,000 names, or what is worth a walk of some milliseconds.
const BYTES_GIVEN: usize = 16 << 10;

/// A directory on the stack; its names that wait are a part of the stack's.
#[derive(Debug)]
pub struct Level {
    descriptor: Option<Arc<OwnedFd>>,
    pub number: u64,
    inode: u64,
    depth: u64,
    start: usize,
    end: usize,
    /// Set if the directory has not been read to its end.
    pub rest: Option<Box<Reading>>,
}

impl Level {
    /// Where it is; `None` if it is closed.
    pub fn place(&self, root: usize) -> Option<Place> {
        Some(Place {
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

    /// Opens it again; `None` if the way there is lost.
    ///
    /// The way is `..` from a directory further down, which may have been moved elsewhere.
    pub fn open_again(&self, calls: &Calls, below: &Place, root: &Root) -> Option<Arc<OwnedFd>> {
        let descriptor = if self.depth == 0 {
            Arc::clone(&root.descriptor)
        } else {
            let steps = below.depth - self.depth;
            Arc::new(self.climb(calls, below.descriptor.as_fd(), steps, root.device)?)
        };
        if let Some(reading) = &self.rest {
            calls.seek(descriptor.as_fd(), reading.cookie).ok()?;
        }
        Some(descriptor)
    }

    fn climb(
        &self,
        calls: &Calls,
        below: BorrowedFd<'_>,
        steps: u64,
        device: u64,
    ) -> Option<OwnedFd> {
        let mut above = calls.open_parent(below).ok()?;
        for _ in 1..steps {
            above = calls.open_parent(above.as_fd()).ok()?;
        }
        let status = calls.statx_of(above.as_fd(), StatxFlags::INO).ok()?;
        ((device_of(&status), status.stx_ino) == (device, self.inode)).then_some(above)
    }
}

/// The levels, the lowest of which may be closed, and all names that wait.
///
/// The names of a level lie behind those of the levels below it, each with its closing NUL. Those
/// behind the topmost level's belong to a directory that is being read.
#[derive(Debug)]
pub struct Stack {
    levels: Vec<Level>,
    names: Vec<u8>,
    /// So many levels from the bottom have no descriptor.
    closed: usize,
    open_at_most: usize,
}

impl Stack {
    pub fn new(open_at_most: usize) -> Self {
        Self {
            levels: Vec::new(),
            names: Vec::new(),
            closed: 0,
            open_at_most,
        }
    }

    /// Takes the top off; whoever does puts it back, or reads what is left of it.
    pub fn pop(&mut self) -> Option<Level> {
        let level = self.levels.pop()?;
        self.closed = self.closed.min(self.levels.len());
        self.names.truncate(level.end);
        Some(level)
    }

    /// Takes the last name that waits in a level just popped.
    ///
    /// What is left of the names of others, who have been given them, goes with the last one.
    pub fn take_name(&mut self, level: &mut Level) -> Option<CString> {
        if !level.has_names() {
            self.names.truncate(self.end());
            return None;
        }
        let waiting = &self.names[level.start..level.end - 1];
        let begin = waiting.iter().rposition(|byte| *byte == 0);
        let begin = begin.map_or(level.start, |nul| level.start + nul + 1);
        let name = CStr::from_bytes_with_nul(&self.names[begin..level.end]);
        let name = name.expect("each name ends in a NUL").to_owned();
        level.end = begin;
        self.names.truncate(begin);
        Some(name)
    }

    /// Puts a level back, unless nothing of it is left.
    pub fn put_back(&mut self, level: Level) {
        if level.has_names() || level.rest.is_some() {
            self.levels.push(level);
        } else {
            self.names.truncate(self.end());
        }
    }

    /// Where the names of the levels end.
    fn end(&self) -> usize {
        self.levels.last().map_or(0, |level| level.end)
    }

    /// Lets a subdirectory of the directory that is being read wait.
    pub fn wait(&mut self, name: &CStr) {
        self.names.extend_from_slice(name.to_bytes_with_nul());
    }

    /// How much waits in the directory that is being read.
    pub fn waiting_bytes(&self) -> usize {
        self.names.len() - self.end()
    }

    /// Pushes the directory that was being read; gives it back if nothing of it waits.
    pub fn push(&mut self, place: Place, rest: Option<Box<Reading>>) -> Result<(), Place> {
        let (start, end) = (self.end(), self.names.len());
        if start == end && rest.is_none() {
            return Err(place);
        }
        self.levels.push(Level {
            descriptor: Some(place.descriptor),
            number: place.number,
            inode: place.inode,
            depth: place.depth,
            start,
            end,
            rest,
        });
        if self.levels.len() - self.closed > self.open_at_most {
            self.levels[self.closed].descriptor = None;
            self.closed += 1;
        }
        Ok(())
    }

    /// Begins with a directory some of whose subdirectories wait.
    pub fn push_waiting(&mut self, place: Place, names: &[u8]) {
        self.names.extend_from_slice(names);
        let _ = self.push(place, None);
    }

    /// The top, if it must be opened before one can go on there.
    pub fn closed_top(&self) -> Option<&Level> {
        self.levels
            .last()
            .filter(|level| level.descriptor.is_none())
    }

    pub fn reopen_top(&mut self, descriptor: Arc<OwnedFd>) {
        if let Some(top) = self.levels.last_mut() {
            top.descriptor = Some(descriptor);
            self.closed = self.levels.len() - 1;
        }
    }

    /// Takes half of what waits furthest up among the open directories, where trees are largest.
    ///
    /// The last name of all stays: a chain would only be handed to and fro.
    pub fn share(&mut self, root: usize) -> Option<(Place, Vec<u8>)> {
        let open = self.closed..self.levels.len();
        let index = open.clone().find(|&at| self.levels[at].has_names())?;
        let is_top = index + 1 == self.levels.len();
        let level = &mut self.levels[index];
        let waiting = &self.names[level.start..level.end];
        let cut = half(waiting).or((!is_top).then_some(waiting.len()))?;
        let given = waiting[..cut].to_vec();
        let place = level.place(root)?;
        level.start += cut;
        if !level.has_names() && level.rest.is_none() {
            self.levels.remove(index);
        }
        Some((place, given))
    }
}

/// Where about half of the names end; `None` if there is only one.
fn half(names: &[u8]) -> Option<usize> {
    let middle = (names.len() / 2).clamp(1, BYTES_GIVEN) - 1;
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
    fn half_of_the_names_is_given_and_never_all() {
        assert_eq!(half(b"alone\0"), None);
        assert_eq!(half(b"a\0b\0"), Some(2));
        assert_eq!(half(b"a\0long name\0"), Some(2));
        assert_eq!(half(b"long name\0b\0"), Some(10));
        assert_eq!(half(b"a\0b\0c\0d\0"), Some(4));
        let many = b"name\0".repeat(100_000);
        let given = half(&many).unwrap();
        assert_eq!(given % 5, 0);
        assert!((16 << 10..(16 << 10) + 5).contains(&given));
    }
}
