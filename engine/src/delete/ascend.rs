//! Leaving finished directories, and removing them from their parents.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, Result};

use super::dir_stack::DirStack;
use super::shared_dir::{DirLocation, SharedDir};
use super::work_queue::Task;
use super::worker::{Outcome, Worker};
use crate::identity::DevIno;
use crate::syscalls::Syscalls;

/// Retries after ENOTEMPTY. Another process may have added entries, or readdir skipped some.
const MAX_REREADS: usize = 3;

/// Larger than any entry of getdents64.
const CHECK_BUFFER_BYTES: usize = 8 << 10;

impl Worker<'_> {
    /// Leaves the current directory, which is finished, and removes it from its parent.
    pub(super) fn ascend(&mut self, stack: &mut DirStack) -> Outcome<()> {
        let index = stack.levels.len() - 1;
        let is_retained = self.context.filters.are_active() || stack.top().is_incomplete;
        if is_retained || index == 0 {
            self.remover.wait()?; // the removal in `finish_shared_dir` waits itself
        } else {
            self.remover.wait_to_remove()?;
        }
        if index > 0 {
            if let Err(error) = stack.reopen_parent(self.calls) {
                return self.abandon_path(stack, error);
            }
        }
        let (mut level, shared) = stack.pop();
        let at = level.name_at;
        let descriptor = level.descriptor.take().expect("the last level is open");
        let parent = match (&shared, index.checked_sub(1)) {
            (Some(directory), None) => {
                return self.finish_shared_dir(Arc::clone(directory), Some(descriptor));
            }
            (Some(directory), Some(parent)) => {
                if !directory.finish_pending() {
                    self.calls.close(descriptor); // the last worker in it removes it
                    stack.drop_level_names(&level);
                    return Ok(());
                }
                level.is_incomplete = directory.is_incomplete();
                parent
            }
            (None, parent) => parent.expect("the first level of a walk is shared"),
        };
        if level.is_incomplete {
            stack.mark_incomplete(parent);
        } else if !self.context.filters.are_active() {
            self.remover.leave_removed_dir();
            match self.calls.rmdir(stack.descriptor(), stack.names.name(at)) {
                Ok(()) => self.remover.tally.add_directory(),
                Err(Errno::NOENT) if self.is_removed(&descriptor) => (),
                Err(Errno::NOENT) => self.report_failure(stack, at, "remove", Errno::STALE),
                Err(Errno::NOTEMPTY | Errno::EXIST)
                    if !self.has_name(&descriptor, stack.descriptor(), stack.names.name(at)) =>
                {
                    self.report_failure(stack, at, "remove", Errno::STALE);
                }
                Err(Errno::NOTEMPTY | Errno::EXIST)
                    if usize::from(level.rereads) < MAX_REREADS
                        && self.calls.seek(descriptor.as_fd(), 0).is_ok() =>
                {
                    level.rereads += 1;
                    level.has_more = true;
                    level.descriptor = Some(descriptor);
                    stack.restore(level);
                    if let Some(directory) = shared {
                        directory.add_pending();
                        stack.shared.push(directory);
                    }
                    return Ok(());
                }
                Err(error) => self.report_failure(stack, at, "remove", error),
            }
        }
        if shared.is_some() {
            stack.shared[parent].finish_pending(); // never the last, because this worker is in it
        }
        self.calls.close(descriptor);
        stack.drop_level_names(&level);
        Ok(())
    }

    /// Abandons the levels whose parent cannot be opened any more, up to one with an open descriptor.
    fn abandon_path(&mut self, stack: &mut DirStack, error: Errno) -> Outcome<()> {
        let index = stack.levels.len() - 2;
        self.context
            .failures
            .report("open", &stack.path(index), error);
        loop {
            let (mut level, shared) = stack.pop();
            let descriptor = level.descriptor.take();
            match shared {
                Some(directory) => {
                    directory.mark_incomplete();
                    self.finish_shared_dir(directory, descriptor)?;
                }
                None => {
                    if let Some(descriptor) = descriptor {
                        self.calls.close(descriptor);
                    }
                }
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
    pub(super) fn finish_shared_dir(
        &mut self,
        mut directory: Arc<SharedDir>,
        mut descriptor: Option<OwnedFd>,
    ) -> Outcome<()> {
        loop {
            if !directory.finish_pending() {
                self.close(descriptor);
                return Ok(());
            }
            let (parent, name) = match &directory.location {
                DirLocation::Target(_) => return self.finish_target(&directory, descriptor),
                DirLocation::Child { parent, name } => (Arc::clone(parent), name.as_c_str()),
            };
            let mut parent_descriptor = None;
            if directory.is_incomplete() {
                parent.mark_incomplete();
            } else if !self.context.filters.are_active() {
                self.remover.wait_to_remove()?;
                let opened = match &descriptor {
                    Some(descriptor) => self.open_parent(descriptor.as_fd(), &parent),
                    None => Err(Errno::STALE),
                };
                match opened {
                    Err(error) => {
                        self.context
                            .failures
                            .report("remove", &directory.path(), error);
                        parent.mark_incomplete();
                    }
                    Ok(opened) => {
                        self.remover.leave_removed_dir();
                        let result = self.calls.rmdir(opened.as_fd(), name);
                        let has_name =
                            |directory: &OwnedFd| self.has_name(directory, opened.as_fd(), name);
                        match result {
                            Ok(()) => self.remover.tally.add_directory(),
                            Err(Errno::NOENT)
                                if descriptor.as_ref().map_or(true, |fd| self.is_removed(fd)) => {}
                            Err(Errno::NOTEMPTY | Errno::EXIST)
                                if descriptor.as_ref().is_some_and(has_name)
                                    && directory.try_reread(MAX_REREADS) =>
                            {
                                self.calls.close(opened);
                                return self.reread(directory, descriptor);
                            }
                            Err(error) => {
                                let is_moved = error == Errno::NOENT;
                                let error = if is_moved { Errno::STALE } else { error };
                                self.context
                                    .failures
                                    .report("remove", &directory.path(), error);
                                parent.mark_incomplete();
                            }
                        }
                        parent_descriptor = Some(opened);
                    }
                }
            }
            self.close(descriptor);
            descriptor = parent_descriptor;
            directory = parent;
        }
    }

    fn finish_target(
        &mut self,
        directory: &Arc<SharedDir>,
        descriptor: Option<OwnedFd>,
    ) -> Outcome<()> {
        let target = directory.target();
        let (Some(opened), false) = (&descriptor, directory.is_incomplete()) else {
            self.close(target.take_parent_fd());
            self.close(descriptor);
            return Ok(()); // the failure is reported already
        };
        let parent_fd = target.take_parent_fd();
        let result = match &parent_fd {
            Some(parent_fd) => {
                self.remover.wait_to_remove()?;
                let name = target.name.as_c_str();
                self.calls.stat(parent_fd.as_fd(), name).and_then(|status| {
                    if DevIno::from_stat(&status) != directory.identity.dev_ino {
                        return Err(Errno::STALE); // another directory has its name now
                    }
                    self.remover.leave_removed_dir();
                    let result = self.calls.rmdir(parent_fd.as_fd(), name);
                    result.map(|()| self.remover.tally.add_directory())
                })
            }
            None if self.context.filters.are_active() => Ok(()),
            None => check_empty(self.calls, opened.as_fd()),
        };
        match result {
            Ok(()) => (),
            Err(Errno::NOTEMPTY | Errno::EXIST) if directory.try_reread(MAX_REREADS) => {
                target.restore_parent_fd(parent_fd);
                return self.reread(Arc::clone(directory), descriptor);
            }
            Err(error) => {
                let operation = if parent_fd.is_some() {
                    "remove"
                } else {
                    "empty"
                };
                self.context.failures.report(operation, &target.path, error);
                directory.mark_incomplete();
            }
        }
        self.close(parent_fd);
        self.close(descriptor);
        Ok(())
    }

    fn reread(&mut self, directory: Arc<SharedDir>, descriptor: Option<OwnedFd>) -> Outcome<()> {
        directory.add_pending();
        let seek = match &descriptor {
            Some(descriptor) => self.calls.seek(descriptor.as_fd(), 0),
            None => Err(Errno::STALE),
        };
        match (seek, descriptor) {
            (Ok(()), Some(descriptor)) => {
                self.context.queue.push(Task::Tree(directory, descriptor));
                Ok(())
            }
            (result, descriptor) => {
                let error = result.err().unwrap_or(Errno::STALE);
                self.context
                    .failures
                    .report("read", &directory.path(), error);
                directory.mark_incomplete();
                self.finish_shared_dir(directory, descriptor)
            }
        }
    }

    fn open_parent(&self, child: BorrowedFd<'_>, parent: &SharedDir) -> Result<OwnedFd> {
        let opened = self.calls.open_parent(child)?;
        let file_system = parent.target().file_system;
        match file_system.identify(opened.as_fd(), self.calls) {
            Ok(identity) if identity.is_same_dir(&parent.identity) => Ok(opened),
            result => {
                self.calls.close(opened);
                Err(result.err().unwrap_or(Errno::STALE))
            }
        }
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

    fn close(&self, descriptor: Option<OwnedFd>) {
        if let Some(descriptor) = descriptor {
            self.calls.close(descriptor);
        }
    }
}

/// Fails with ENOTEMPTY if a directory has entries. A kept directory has no rmdir that would fail.
fn check_empty(calls: &Syscalls, directory: BorrowedFd<'_>) -> Result<()> {
    let mut buffer = [MaybeUninit::uninit(); CHECK_BUFFER_BYTES];
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
