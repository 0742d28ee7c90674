//! Leaving directories that are done with, and removing them from those above.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};

use super::dir_stack::Walk;
use super::shared_dir::{Directory, Place};
use super::work_queue::Task;
use super::worker::{Outcome, Worker};
use crate::identity::Identity;
use crate::syscalls::Calls;

/// A directory that is not empty though all in it was removed is read so many times more:
/// somebody may have put something into it, or a file system may have skipped a name.
const REREADS: usize = 3;

/// Room for the longest name there is, several times.
const LAST_LOOK_BYTES: usize = 8 << 10;

impl Worker<'_> {
    /// Leaves a directory that is done with, and removes it from the one above.
    pub(super) fn go_up(&mut self, walk: &mut Walk) -> Outcome<()> {
        let index = walk.levels.len() - 1;
        let is_kept = self.run.filters.are_active() || walk.top().is_spoiled;
        if is_kept || index == 0 {
            self.remover.wait()?; // the first level of a walk waits where it is released
        } else {
            self.remover.wait_to_remove()?;
        }
        if index > 0 {
            if let Err(why) = walk.open_above(self.calls) {
                return self.lose_way(walk, why);
            }
        }
        let (mut level, shared) = walk.leave();
        let at = level.name_at;
        let descriptor = level.descriptor.take().expect("the last level is open");
        let above = match (&shared, index.checked_sub(1)) {
            (Some(directory), None) => {
                return self.release(Arc::clone(directory), Some(descriptor));
            }
            (Some(directory), Some(above)) => {
                if !directory.end() {
                    self.calls.close(descriptor); // whoever is the last in it removes it
                    walk.forget_level(&level);
                    return Ok(());
                }
                level.is_spoiled = directory.is_spoiled();
                above
            }
            (None, above) => above.expect("the first level of a walk is shared"),
        };
        if level.is_spoiled {
            walk.spoil(above);
        } else if !self.run.filters.are_active() {
            self.remover.leave_removed_dir();
            match self.calls.rmdir(walk.descriptor(), walk.names.name(at)) {
                Ok(()) => self.remover.tally.add_directory(),
                Err(Errno::NOENT) if self.is_gone(&descriptor) => (),
                Err(Errno::NOENT) => self.failed_below(walk, at, "remove", Errno::STALE),
                Err(Errno::NOTEMPTY | Errno::EXIST)
                    if !self.has_name(&descriptor, walk.descriptor(), walk.names.name(at)) =>
                {
                    self.failed_below(walk, at, "remove", Errno::STALE);
                }
                Err(Errno::NOTEMPTY | Errno::EXIST)
                    if usize::from(level.rereads) < REREADS
                        && self.calls.seek(descriptor.as_fd(), 0).is_ok() =>
                {
                    level.rereads += 1;
                    level.has_more = true;
                    level.descriptor = Some(descriptor);
                    walk.put_back(level);
                    if let Some(directory) = shared {
                        directory.begin();
                        walk.shared.push(directory);
                    }
                    return Ok(());
                }
                Err(why) => self.failed_below(walk, at, "remove", why),
            }
        }
        if shared.is_some() {
            walk.shared[above].end(); // not the last: this worker is in it
        }
        self.calls.close(descriptor);
        walk.forget_level(&level);
        Ok(())
    }

    /// Gives up the levels above that cannot be progress any more, down from one that is open.
    fn lose_way(&mut self, walk: &mut Walk, why: Errno) -> Outcome<()> {
        let index = walk.levels.len() - 2;
        self.run.failures.tell("open", &walk.path(index), why);
        loop {
            let (mut level, shared) = walk.leave();
            let descriptor = level.descriptor.take();
            match shared {
                Some(directory) => {
                    directory.spoil();
                    self.release(directory, descriptor)?;
                }
                None => {
                    if let Some(descriptor) = descriptor {
                        self.calls.close(descriptor);
                    }
                }
            }
            walk.forget_level(&level);
            let Some(above) = walk.levels.len().checked_sub(1) else {
                return Ok(());
            };
            walk.spoil(above);
            if walk.levels[above].descriptor.is_some() {
                return Ok(());
            }
        }
    }

    /// Ends one's work in a directory; the last one removes it, and so on upwards.
    pub(super) fn release(
        &mut self,
        mut directory: Arc<Directory>,
        mut descriptor: Option<OwnedFd>,
    ) -> Outcome<()> {
        loop {
            if !directory.end() {
                self.close(descriptor);
                return Ok(());
            }
            let (above, name) = match &directory.place {
                Place::Target(_) => return self.release_target(&directory, descriptor),
                Place::Below { above, name } => (Arc::clone(above), name.as_c_str()),
            };
            let mut descriptor_above = None;
            if directory.is_spoiled() {
                above.spoil();
            } else if !self.run.filters.are_active() {
                self.remover.wait_to_remove()?;
                let opened = match &descriptor {
                    Some(descriptor) => self.open_above(descriptor.as_fd(), &above),
                    None => Err(Errno::STALE),
                };
                match opened {
                    Err(why) => {
                        self.run.failures.tell("remove", &directory.path(), why);
                        above.spoil();
                    }
                    Ok(opened) => {
                        self.remover.leave_removed_dir();
                        let result = self.calls.rmdir(opened.as_fd(), name);
                        let has_name = |one: &OwnedFd| self.has_name(one, opened.as_fd(), name);
                        match result {
                            Ok(()) => self.remover.tally.add_directory(),
                            Err(Errno::NOENT)
                                if descriptor.as_ref().map_or(true, |one| self.is_gone(one)) => {}
                            Err(Errno::NOTEMPTY | Errno::EXIST)
                                if descriptor.as_ref().is_some_and(has_name)
                                    && directory.may_be_read_again(REREADS) =>
                            {
                                self.calls.close(opened);
                                return self.read_again(directory, descriptor);
                            }
                            Err(why) => {
                                let is_moved = why == Errno::NOENT;
                                let why = if is_moved { Errno::STALE } else { why };
                                self.run.failures.tell("remove", &directory.path(), why);
                                above.spoil();
                            }
                        }
                        descriptor_above = Some(opened);
                    }
                }
            }
            self.close(descriptor);
            descriptor = descriptor_above;
            directory = above;
        }
    }

    fn release_target(
        &mut self,
        directory: &Arc<Directory>,
        descriptor: Option<OwnedFd>,
    ) -> Outcome<()> {
        let target = directory.target();
        let (Some(opened), false) = (&descriptor, directory.is_spoiled()) else {
            self.close(target.take_holder());
            self.close(descriptor);
            return Ok(()); // what spoiled it was told
        };
        let held = target.take_holder();
        let result = match &held {
            Some(holder) => {
                self.remover.wait_to_remove()?;
                let name = target.name.as_c_str();
                self.calls.stat(holder.as_fd(), name).and_then(|status| {
                    if Identity::of(&status) != directory.known.identity {
                        return Err(Errno::STALE); // another one stands in its place
                    }
                    self.remover.leave_removed_dir();
                    let result = self.calls.rmdir(holder.as_fd(), name);
                    result.map(|()| self.remover.tally.add_directory())
                })
            }
            None if self.run.filters.are_active() => Ok(()),
            None => is_empty(self.calls, opened.as_fd()),
        };
        match result {
            Ok(()) => (),
            Err(Errno::NOTEMPTY | Errno::EXIST) if directory.may_be_read_again(REREADS) => {
                target.keep_holder(held);
                return self.read_again(Arc::clone(directory), descriptor);
            }
            Err(why) => {
                let operation = if held.is_some() { "remove" } else { "empty" };
                self.run.failures.tell(operation, &target.path, why);
                directory.spoil();
            }
        }
        self.close(held);
        self.close(descriptor);
        Ok(())
    }

    fn read_again(
        &mut self,
        directory: Arc<Directory>,
        descriptor: Option<OwnedFd>,
    ) -> Outcome<()> {
        directory.begin();
        let again = match &descriptor {
            Some(descriptor) => self.calls.seek(descriptor.as_fd(), 0),
            None => Err(Errno::STALE),
        };
        match (again, descriptor) {
            (Ok(()), Some(descriptor)) => {
                self.run.queue.push(Task::Tree(directory, descriptor));
                Ok(())
            }
            (result, descriptor) => {
                let why = result.err().unwrap_or(Errno::STALE);
                self.run.failures.tell("read", &directory.path(), why);
                directory.spoil();
                self.release(directory, descriptor)
            }
        }
    }

    fn open_above(&self, below: BorrowedFd<'_>, above: &Directory) -> Result<OwnedFd> {
        let opened = self.calls.open_above(below)?;
        let file_system = above.target().file_system;
        match file_system.identify(opened.as_fd(), self.calls) {
            Ok(found) if found.is(&above.known) => Ok(opened),
            other => {
                self.calls.close(opened);
                Err(other.err().unwrap_or(Errno::STALE))
            }
        }
    }

    /// Tells whether a directory that has no name any more is removed, and not moved away.
    fn is_gone(&self, directory: &OwnedFd) -> bool {
        let status = self.calls.fstat(directory.as_fd());
        status.map_or(true, |status| status.st_nlink == 0)
    }

    /// Tells whether a name still stands for a directory. If another one was put in its place, what
    /// is put into the first one now is not in the tree any more.
    fn has_name(&self, directory: &OwnedFd, above: BorrowedFd<'_>, name: &CStr) -> bool {
        let there = self.calls.stat(above, name);
        let here = self.calls.fstat(directory.as_fd());
        matches!((there, here), (Ok(there), Ok(here)) if Identity::of(&there) == Identity::of(&here))
    }

    fn close(&self, descriptor: Option<OwnedFd>) {
        if let Some(descriptor) = descriptor {
            self.calls.close(descriptor);
        }
    }
}

/// Looks once more whether a directory that is kept is empty: nobody's rmdir will tell.
fn is_empty(calls: &Calls, directory: BorrowedFd<'_>) -> Result<()> {
    let mut buffer = [MaybeUninit::uninit(); LAST_LOOK_BYTES];
    let mut has_names = false;
    calls.seek(directory, 0)?;
    while !has_names {
        let read = calls.read_names(directory, &mut buffer, |_, _, _| has_names = true)?;
        if read.is_none() {
            break;
        }
    }
    if has_names {
        Err(Errno::NOTEMPTY)
    } else {
        Ok(())
    }
}
