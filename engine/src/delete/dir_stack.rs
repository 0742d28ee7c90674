//! The directories from the start of a worker's walk down to its current one.
//!
//! A level takes 48 bytes and its name. Only the lowest levels have open descriptors. The worker
//! ascends by `..` and compares the identity with the one recorded on descent, so a tree of any
//! depth needs a bounded number of descriptors.

use std::ffi::CStr;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};

use super::shared_dir::SharedDir;
use crate::file_systems::FileSystem;
use crate::identity::{DevIno, DirIdentity};
use crate::names::NameStack;
use crate::syscalls::Syscalls;

/// A stack has at least as many descriptors.
const MIN_OPEN_DIRS: usize = 4;

#[derive(Default)]
pub struct Level {
    pub inode: u64,
    birth_ns: u64,
    /// Offset of its own name in the stack of names.
    pub name_at: u32,
    /// Offset of the name of the first pending subdirectory.
    pub first_name: u32,
    /// Pending subdirectories.
    pub pending: u32,
    /// Offset at which the names of its subdirectories start.
    base: u32,
    pub descriptor: Option<OwnedFd>,
    /// An entry could not be removed.
    pub is_incomplete: bool,
    /// The directory was not read to its end.
    pub has_more: bool,
    /// The offset (getdents64) of what was not read.
    pub cookie: u64,
    /// Repeated reads because it was not empty.
    pub rereads: u8,
    /// `take_name` takes the first pending name next, not the last.
    is_first_next: bool,
}

/// The descriptors of all directory stacks. Each stack has some of its own, and more while any are left,
/// so that a worker in a deep tree does not open directories again that it could have kept.
pub struct OpenDirs {
    pub own: usize,
    left: AtomicI64,
}

impl OpenDirs {
    /// Divides half of `total` equally; a stack always gets `MIN_OPEN_DIRS`.
    pub fn new(total: usize, workers: usize) -> Self {
        let own = (total / 2 / workers).max(MIN_OPEN_DIRS);
        Self {
            own,
            left: AtomicI64::new(total.saturating_sub(own * workers) as i64),
        }
    }
}

/// The levels of one walk; the last one is the current directory.
pub struct DirStack<'run> {
    pub levels: Vec<Level>,
    pub names: NameStack,
    /// The highest levels, which are shared with other workers.
    pub shared: Vec<Arc<SharedDir>>,
    device: u64,
    pub file_system: &'static FileSystem,
    open: usize,
    open_dirs: &'run OpenDirs,
    /// No level above this one has a descriptor, except level 0.
    first_open: usize,
    /// No level above this one has pending names.
    pub first_pending: usize,
}

impl<'run> DirStack<'run> {
    pub fn new(directory: Arc<SharedDir>, descriptor: OwnedFd, open_dirs: &'run OpenDirs) -> Self {
        Self {
            levels: vec![Level::new(&directory.identity, 0, 0, descriptor)],
            names: NameStack::default(),
            device: directory.identity.dev_ino.device,
            file_system: directory.target.file_system,
            shared: vec![directory],
            open: 1,
            open_dirs,
            first_open: 1,
            first_pending: 0,
        }
    }

    pub fn top(&mut self) -> &mut Level {
        self.levels
            .last_mut()
            .expect("a walk ends with its last level")
    }

    /// Returns the descriptor of the current directory, which is always open.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        let level = self.levels.last().expect("a walk ends with its last level");
        let descriptor = level.descriptor.as_ref();
        descriptor.expect("the last level is open").as_fd()
    }

    /// Takes a pending name of the current directory: the last one, or with allocation groups the last
    /// and the first alternately.
    ///
    /// The rest is then in the middle, and a worker that gets half of it works in other groups.
    pub fn take_name(&mut self) -> u32 {
        let has_allocation_groups = self.file_system.has_allocation_groups;
        let level = self.top();
        let (is_first, at) = (level.is_first_next, level.first_name);
        level.pending -= 1;
        level.is_first_next = has_allocation_groups && !is_first;
        if !is_first {
            return self.names.last().expect("it is counted as pending");
        }
        self.top().first_name = self.names.next_after(at);
        at
    }

    /// Opens a subdirectory of the current directory by the name at this offset.
    pub fn open_child(&mut self, at: u32, calls: &Syscalls) -> Result<OwnedFd> {
        loop {
            match calls.open_directory(self.descriptor(), self.names.name(at)) {
                Err(Errno::MFILE | Errno::NFILE) if self.close_oldest(calls) => (),
                result => return result,
            }
        }
    }

    /// Makes an open subdirectory the current directory. Fails with XDEV on another file system.
    pub fn push(&mut self, at: u32, descriptor: OwnedFd, calls: &Syscalls) -> Result<()> {
        match self.file_system.identify(descriptor.as_fd(), calls) {
            Ok((identity, _)) if identity.dev_ino.device == self.device => {
                let is_left = self.open_dirs.left.load(Relaxed) > 0;
                if self.open >= self.open_dirs.own && !is_left {
                    self.close_oldest(calls);
                }
                self.add_level(at, &identity, descriptor);
                Ok(())
            }
            result => {
                calls.close(descriptor);
                Err(result.err().unwrap_or(Errno::XDEV))
            }
        }
    }

    fn add_level(&mut self, at: u32, identity: &DirIdentity, descriptor: OwnedFd) {
        let base = self.names.end();
        self.levels.push(Level::new(identity, at, base, descriptor));
        self.count_open();
    }

    fn count_open(&mut self) {
        self.open += 1;
        if self.open > self.open_dirs.own {
            self.open_dirs.left.fetch_sub(1, Relaxed);
        }
    }

    fn count_closed(&mut self) {
        if self.open > self.open_dirs.own {
            self.open_dirs.left.fetch_add(1, Relaxed);
        }
        self.open -= 1;
    }

    fn close_oldest(&mut self, calls: &Syscalls) -> bool {
        let last = self.levels.len() - 1;
        while self.first_open < last {
            let level = &mut self.levels[self.first_open];
            self.first_open += 1;
            if let Some(descriptor) = level.descriptor.take() {
                calls.close(descriptor);
                self.count_closed();
                return true;
            }
        }
        false
    }

    /// Opens the parent of the current directory by `..` if it is closed. Changes nothing on failure.
    pub fn reopen_parent(&mut self, calls: &Syscalls) -> Result<()> {
        let index = self.levels.len() - 2;
        if self.levels[index].descriptor.is_some() {
            return Ok(());
        }
        let (expected, file_system) = (self.identity(index), self.file_system);
        let descriptor = calls.open_ancestor(self.descriptor(), 1, &expected, |ancestor| {
            Ok(file_system.identify(ancestor, calls)?.0)
        })?;
        let level = &mut self.levels[index];
        if level.has_more {
            if let Err(error) = calls.seek(descriptor.as_fd(), level.cookie) {
                calls.close(descriptor);
                return Err(error);
            }
        }
        level.descriptor = Some(descriptor);
        self.count_open();
        self.first_open = self.first_open.min(index.max(1));
        Ok(())
    }

    /// Removes the current directory from the stack. Its name stays until `drop_name`.
    pub fn pop(&mut self) -> (Level, Option<Arc<SharedDir>>) {
        let level = self.levels.pop().expect("a walk ends with its last level");
        let index = self.levels.len();
        if level.descriptor.is_some() {
            self.count_closed();
        }
        self.first_pending = self.first_pending.min(index.saturating_sub(1));
        self.first_open = self.first_open.min(index.max(1));
        let is_shared = index < self.shared.len();
        (level, if is_shared { self.shared.pop() } else { None })
    }

    /// Pushes a level again that `pop` has returned, to read it once more.
    pub fn restore(&mut self, level: Level) {
        self.levels.push(level);
        self.count_open();
    }

    /// Drops the name of a level that `pop` has returned, and all names in it.
    pub fn drop_level_names(&mut self, level: &Level) {
        self.names.truncate(level.base);
        self.drop_name(level.name_at);
    }

    /// Drops a name that `take_name` has returned. A name that is not the last one is dropped with the
    /// names of its level.
    pub fn drop_name(&mut self, at: u32) {
        if self.names.last() == Some(at) {
            self.names.truncate(at);
        }
    }

    /// Drops the names of the current directory, which has no pending one.
    pub fn clear_names(&mut self) {
        let index = self.levels.len() - 1;
        let base = self.levels[index].base;
        self.names.truncate(base);
        self.levels[index].first_name = base;
        self.levels[index].pending = 0;
        self.first_pending = self.first_pending.min(index);
    }

    pub fn add_name(&mut self, name: &CStr) {
        self.names.push(name);
        self.top().pending += 1;
    }

    fn identity(&self, index: usize) -> DirIdentity {
        let level = &self.levels[index];
        DirIdentity {
            dev_ino: DevIno {
                device: self.device,
                inode: level.inode,
            },
            birth_ns: level.birth_ns,
        }
    }

    /// Returns a level as a shared directory.
    pub fn share(&mut self, index: usize) -> &Arc<SharedDir> {
        while self.shared.len() <= index {
            let at = self.shared.len();
            let parent = Arc::clone(&self.shared[at - 1]);
            parent.add_pending();
            let level = &self.levels[at];
            let name = self.names.name(level.name_at).to_owned();
            let target = Arc::clone(&parent.target);
            let directory = SharedDir::new(target, Some((parent, name)), self.identity(at));
            if level.is_incomplete {
                directory.mark_incomplete();
            }
            self.shared.push(directory);
        }
        &self.shared[index]
    }

    /// Marks a level in which an entry could not be removed.
    pub fn mark_incomplete(&mut self, index: usize) {
        match self.shared.get(index) {
            Some(directory) => directory.mark_incomplete(),
            None => self.levels[index].is_incomplete = true,
        }
    }

    /// Returns the number of levels below the target.
    pub fn depth(&self, index: usize) -> usize {
        self.shared[0].depth as usize + index
    }

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
    fn new(identity: &DirIdentity, name_at: u32, base: u32, descriptor: OwnedFd) -> Self {
        Self {
            inode: identity.dev_ino.inode,
            birth_ns: identity.birth_ns,
            name_at,
            first_name: base,
            base,
            descriptor: Some(descriptor),
            has_more: true,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::ffi::CString;
    use std::fs::File;
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;
    use crate::delete::shared_dir::Target;
    use crate::file_systems::KNOWN;

    const IDENTITY: DirIdentity = DirIdentity {
        dev_ino: DevIno {
            device: 1,
            inode: 2,
        },
        birth_ns: 0,
    };

    fn open_descriptor() -> OwnedFd {
        File::open("/").unwrap().into()
    }

    fn new_stack<'a>(file_system: &'static FileSystem, open_dirs: &'a OpenDirs) -> DirStack<'a> {
        let target = Target {
            path: b"target".to_vec(),
            name: CString::default(),
            parent_fd: Mutex::default(),
            file_system,
        };
        let directory = SharedDir::new(Arc::new(target), None, IDENTITY);
        DirStack::new(directory, open_descriptor(), open_dirs)
    }

    /// The name of a level, and its pending names.
    type Expected = (String, VecDeque<String>);

    fn read(stack: &mut DirStack<'_>, level: &mut Expected, number: u8, created: &mut Vec<String>) {
        stack.clear_names();
        for _ in 0..number {
            let name = format!("{}-{}", "x".repeat(created.len() % 7), created.len());
            stack.add_name(&CString::new(name.as_str()).unwrap());
            level.1.push_back(name.clone());
            created.push(name);
        }
    }

    /// Shares half of the highest pending names, as `share_subdirs` does.
    fn share(stack: &mut DirStack<'_>, expected: &mut [Expected]) -> Vec<String> {
        let Some(index) = expected.iter().position(|level| !level.1.is_empty()) else {
            return Vec::new();
        };
        let shared = stack.levels[index].pending.div_ceil(2);
        let from = stack.levels[index].first_name;
        let (copied, to) = stack.names.copy(from, shared as usize);
        let mut copy = NameStack::default();
        copy.append(&copied);
        stack.levels[index].first_name = to;
        stack.levels[index].pending -= shared;
        let names: Vec<String> = expected[index].1.drain(..shared as usize).collect();
        let mut at = 0;
        for name in &names {
            assert_eq!(copy.name(at).to_str().unwrap(), name);
            at = copy.next_after(at);
        }
        assert_eq!(at, copy.end());
        names
    }

    proptest! {
        #[test]
        fn every_name_is_taken_or_shared_once(
            has_allocation_groups: bool,
            script in proptest::collection::vec((0u8..4, 0u8..6), 0..300),
        ) {
            let mut known = KNOWN.iter();
            let file_system = known.find(|known| known.has_allocation_groups == has_allocation_groups);
            let file_system = file_system.unwrap();
            let open_dirs = OpenDirs::new(1_024, 1);
            let mut stack = new_stack(file_system, &open_dirs);
            let (mut created, mut done) = (Vec::new(), Vec::new());
            let mut expected: Vec<Expected> = vec![("target".into(), VecDeque::new())];
            read(&mut stack, &mut expected[0], 5, &mut created);
            let mut is_first_next = vec![false];
            for (action, number) in script.into_iter().chain(std::iter::repeat((0, 0))) {
                let Some((_, pending)) = expected.last_mut() else {
                    break;
                };
                if action == 3 {
                    done.append(&mut share(&mut stack, &mut expected));
                    continue;
                }
                if pending.is_empty() {
                    let (level, _) = stack.pop();
                    stack.drop_level_names(&level);
                    expected.pop();
                    is_first_next.pop();
                    continue;
                }
                let is_first = is_first_next.last_mut().unwrap();
                let name = if *is_first { pending.pop_front() } else { pending.pop_back() };
                *is_first = has_allocation_groups && !*is_first;
                let at = stack.take_name();
                let name = name.unwrap();
                prop_assert_eq!(stack.names.name(at).to_str().unwrap(), name.as_str());
                done.push(name.clone());
                if action == 0 {
                    stack.drop_name(at);
                    continue;
                }
                stack.add_level(at, &IDENTITY, open_descriptor());
                expected.push((name, VecDeque::new()));
                is_first_next.push(false);
                read(&mut stack, expected.last_mut().unwrap(), number, &mut created);
                let names: Vec<&str> = expected.iter().map(|level| level.0.as_str()).collect();
                let path = stack.path(stack.levels.len() - 1);
                prop_assert_eq!(path, names.join("/").into_bytes());
            }
            prop_assert_eq!(stack.names.bytes(), 0);
            created.sort();
            done.sort();
            prop_assert_eq!(created, done);
        }
    }

    #[test]
    fn level_takes_48_bytes() {
        assert_eq!(std::mem::size_of::<Level>(), 48); // memory of a chain of a million
    }
}
