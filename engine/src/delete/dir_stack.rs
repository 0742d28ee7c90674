//! Where a worker stands in a tree: the directories from where it began down to the one it is in.
//!
//! A level takes 40 bytes and its name. Only the last so many keep their descriptor; the way back
//! up is `..`, compared with what was there on the way down. So a tree of any depth needs a
//! bounded number of descriptors.

use std::ffi::CStr;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};

use super::file_systems::FileSystem;
use super::names::NameStack;
use super::shared_dir::{Directory, Place};
use crate::identity::{Identity, Known};
use crate::syscalls::Calls;

/// A directory that is being emptied.
pub struct Level {
    pub inode: u64,
    birth: u64,
    /// Its own name in the stack of names.
    pub name_at: u32,
    /// The first of the names of directories in it that wait to be emptied.
    pub first: u32,
    /// How many these are.
    pub waiting: u32,
    /// Where its names begin in the stack, if it has any.
    base: u32,
    pub descriptor: Option<OwnedFd>,
    /// Something in it could not be removed.
    pub is_spoiled: bool,
    /// It has not been read to its end.
    pub has_more: bool,
    /// How often it was read anew because it was not empty.
    pub rereads: u8,
    /// The next name is the first that waits, and not the last.
    is_first_next: bool,
}

/// The levels of one walk.
pub struct Walk {
    pub levels: Vec<Level>,
    pub names: NameStack,
    /// The first of the levels as directories that others know too.
    pub shared: Vec<Arc<Directory>>,
    device: u64,
    pub file_system: FileSystem,
    /// Where reading goes on, for levels not read to their end.
    cookies: Vec<(usize, u64)>,
    open: usize,
    max_open: usize,
    /// No level above this one has a descriptor, the first level aside.
    first_open: usize,
    /// No level above this one has names that wait.
    pub first_waiting: usize,
}

impl Walk {
    /// Begins in a directory.
    pub fn begin(directory: Arc<Directory>, descriptor: OwnedFd, max_open: usize) -> Self {
        Self {
            levels: vec![Level::new(&directory.known, 0, 0, descriptor)],
            names: NameStack::default(),
            device: directory.known.identity.device,
            file_system: directory.target().file_system,
            shared: vec![directory],
            cookies: Vec::new(),
            open: 1,
            max_open,
            first_open: 1,
            first_waiting: 0,
        }
    }

    pub fn top(&mut self) -> &mut Level {
        self.levels
            .last_mut()
            .expect("a walk ends with its last level")
    }

    /// The descriptor of the level it stands in, which is always open.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        let level = self.levels.last().expect("a walk ends with its last level");
        level
            .descriptor
            .as_ref()
            .expect("the last level is open")
            .as_fd()
    }

    /// Takes a name that waits in the level it stands in: the last one, or where parts of the
    /// file system have locks of their own, the last and the first by turns. So what is left lies
    /// in the middle, and whoever is given the half of it works in another part to the end.
    pub fn next_name(&mut self) -> u32 {
        let has_parts = self.file_system.has_parts();
        let level = self
            .levels
            .last_mut()
            .expect("a walk ends with its last level");
        level.waiting -= 1;
        if level.is_first_next {
            level.is_first_next = false;
            let at = level.first;
            level.first = self.names.behind(at);
            return at;
        }
        level.is_first_next = has_parts;
        self.names.last().expect("it is counted as waiting")
    }

    /// Opens a directory by the name at this place in the level it stands in.
    pub fn open(&mut self, at: u32, calls: &Calls) -> Result<OwnedFd> {
        loop {
            match calls.open_directory(self.descriptor(), self.names.name(at)) {
                Err(Errno::MFILE | Errno::NFILE) if self.close_oldest(calls) => (),
                other => return other,
            }
        }
    }

    /// Goes down into a directory that was opened; refuses another file system.
    pub fn enter(&mut self, at: u32, descriptor: OwnedFd, calls: &Calls) -> Result<()> {
        let known = match self.file_system.identify(descriptor.as_fd(), calls) {
            Ok(known) => known,
            Err(why) => {
                calls.close(descriptor);
                return Err(why);
            }
        };
        if known.identity.device != self.device {
            calls.close(descriptor);
            return Err(Errno::XDEV);
        }
        if self.open >= self.max_open {
            self.close_oldest(calls);
        }
        self.add_level(at, &known, descriptor);
        Ok(())
    }

    fn add_level(&mut self, at: u32, known: &Known, descriptor: OwnedFd) {
        let base = self.names.end();
        self.levels.push(Level::new(known, at, base, descriptor));
        self.open += 1;
    }

    fn close_oldest(&mut self, calls: &Calls) -> bool {
        let last = self.levels.len() - 1;
        while self.first_open < last {
            let level = &mut self.levels[self.first_open];
            self.first_open += 1;
            if let Some(descriptor) = level.descriptor.take() {
                calls.close(descriptor);
                self.open -= 1;
                return true;
            }
        }
        false
    }

    /// Leaves the level it stands in for the one above, which is open afterwards.
    ///
    /// Where that cannot be progress by `..` any more, nothing has changed.
    pub fn open_above(&mut self, calls: &Calls) -> Result<()> {
        let index = self.levels.len() - 2;
        if self.levels[index].descriptor.is_some() {
            return Ok(());
        }
        let descriptor = calls.open_above(self.descriptor())?;
        let expected = self.known(index);
        let found = self.file_system.identify(descriptor.as_fd(), calls);
        let checked = found.and_then(|found| {
            if !found.is(&expected) {
                return Err(Errno::STALE); // moved while it was being emptied
            }
            match self.cookie(index) {
                Some(cookie) if self.levels[index].has_more => {
                    calls.seek(descriptor.as_fd(), cookie)
                }
                _ => Ok(()),
            }
        });
        if let Err(why) = checked {
            calls.close(descriptor);
            return Err(why);
        }
        self.levels[index].descriptor = Some(descriptor);
        self.open += 1;
        self.first_open = self.first_open.min(index.max(1));
        Ok(())
    }

    /// Takes the level it stands in away; its name stays until `forget_name`.
    pub fn leave(&mut self) -> (Level, Option<Arc<Directory>>) {
        let level = self.levels.pop().expect("a walk ends with its last level");
        let index = self.levels.len();
        if level.descriptor.is_some() {
            self.open -= 1;
        }
        if self.cookie(index).is_some() {
            self.cookies.pop();
        }
        self.first_waiting = self.first_waiting.min(index.saturating_sub(1));
        self.first_open = self.first_open.min(index.max(1));
        let is_shared = index < self.shared.len();
        (level, if is_shared { self.shared.pop() } else { None })
    }

    /// Puts a level back that was left, to read it once more.
    pub fn put_back(&mut self, level: Level) {
        self.levels.push(level);
        self.open += 1;
    }

    /// Forgets the name of a level that was left, and all that were in it.
    pub fn forget_level(&mut self, level: &Level) {
        self.names.cut(level.base);
        self.forget_name(level.name_at);
    }

    /// Forgets a name that `next_name` has returned; one of the first ones goes with its level's.
    pub fn forget_name(&mut self, at: u32) {
        if self.names.last() == Some(at) {
            self.names.cut(at);
        }
    }

    /// Makes room for names of the level it stands in, which has none left.
    pub fn begin_names(&mut self) {
        let index = self.levels.len() - 1;
        let base = self.levels[index].base;
        self.names.cut(base);
        self.levels[index].first = base;
        self.levels[index].waiting = 0;
        self.first_waiting = self.first_waiting.min(index);
    }

    pub fn add_name(&mut self, name: &CStr) {
        self.names.push(name);
        self.top().waiting += 1;
    }

    /// Notes how far the level it stands in has been read; `None`: to its end.
    pub fn note_read(&mut self, cookie: Option<u64>) {
        let index = self.levels.len() - 1;
        if self.cookie(index).is_some() {
            self.cookies.pop();
        }
        self.top().has_more = cookie.is_some();
        if let Some(cookie) = cookie {
            self.cookies.push((index, cookie));
        }
    }

    fn cookie(&self, index: usize) -> Option<u64> {
        let &(level, cookie) = self.cookies.last()?;
        (level == index).then_some(cookie)
    }

    fn known(&self, index: usize) -> Known {
        let level = &self.levels[index];
        Known {
            identity: Identity {
                device: self.device,
                inode: level.inode,
            },
            birth: level.birth,
        }
    }

    /// The level as a directory that others know too.
    pub fn share(&mut self, index: usize) -> &Arc<Directory> {
        while self.shared.len() <= index {
            let above = Arc::clone(&self.shared[self.shared.len() - 1]);
            above.begin();
            let level = &self.levels[self.shared.len()];
            let name = self.names.name(level.name_at).to_owned();
            let directory =
                Directory::new(Place::Below { above, name }, self.known(self.shared.len()));
            if level.is_spoiled {
                directory.spoil();
            }
            self.shared.push(directory);
        }
        &self.shared[index]
    }

    /// Notes that something in a level could not be removed.
    pub fn spoil(&mut self, index: usize) {
        match self.shared.get(index) {
            Some(directory) => directory.spoil(),
            None => self.levels[index].is_spoiled = true,
        }
    }

    /// Levels below the target.
    pub fn depth(&self, index: usize) -> usize {
        self.shared[0].depth as usize + index
    }

    /// The path of a level.
    pub fn path(&self, index: usize) -> Vec<u8> {
        let mut path = self.shared[0].path();
        for level in &self.levels[1..=index] {
            path.push(b'/');
            path.extend_from_slice(self.names.name(level.name_at).to_bytes());
        }
        path
    }
}

impl Level {
    fn new(known: &Known, name_at: u32, base: u32, descriptor: OwnedFd) -> Self {
        Self {
            inode: known.identity.inode,
            birth: known.birth,
            name_at,
            first: base,
            waiting: 0,
            base,
            descriptor: Some(descriptor),
            is_spoiled: false,
            has_more: true,
            rereads: 0,
            is_first_next: false,
        }
    }
}

#[cfg(test)]
mod tests;
