//! Walks a tree by directory descriptors. Follows no symbolic link and enters no mount.
//!
//! Only directories with unread subdirectories stay on the stack, and only some of them keep an open
//! descriptor. The walker ascends by `..` and compares device and inode. So a tree of any depth
//! needs a bounded number of descriptors, and a chain needs no memory.

use std::ffi::CStr;
use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Access, AtFlags, FileType, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgid, getuid};

use super::dir_progress::{kind_of, modified, DirProgress, ENTRY_MASK};
use super::emitter::Emitter;
use super::records::{flag, NO_PARENT};
use super::stack::{Dir, Next, Stack};
use super::Context;
use crate::identity::DevIno;
use crate::names::NameBatch;
use crate::syscalls::Syscalls;

/// A directory with this many entries is checked for changes while it was read.
const MIN_WATCHED_ENTRIES: u64 = 1_000;

/// Names between two readings of the clock.
const NAMES_PER_CLOCK_READ: usize = 256;

const BTRFS_SUBVOLUME_INODE: u64 = 256;

/// Fields of statx(2) that a directory needs.
const DIR_MASK: StatxFlags = ENTRY_MASK.union(StatxFlags::GID);

/// Work for any walker.
#[derive(Debug)]
pub enum Job {
    /// Read a root and everything below it.
    Root(usize),
    /// Read subdirectories (see `NameStack::copy`).
    Subdirs { dir: Dir, names: Box<[u8]> },
    /// Process some of the names in a directory, and read the subdirectories among them.
    Names {
        dir: Dir,
        owner: u32,
        dirents: NameBatch,
    },
}

/// A walker: reads directories in a thread of its own.
pub struct Walker<'a> {
    pub(super) context: &'a Context,
    calls: Syscalls,
    stack: Stack,
    buffer: Vec<u8>,
    dirents: NameBatch,
    emitter: Emitter<'a>,
}

impl<'a> Walker<'a> {
    pub fn new(context: &'a Context) -> Self {
        Self {
            context,
            calls: Syscalls::default(),
            stack: Stack::new(context.limits.max_open),
            buffer: Vec::with_capacity(context.limits.buffer_bytes),
            dirents: NameBatch::default(),
            emitter: Emitter::new(context),
        }
    }

    /// Runs until the queue is closed.
    pub fn run(mut self) {
        while let Some(job) = self.context.queue.pop() {
            self.start_job(job);
            while let Some((dir, next)) = self.stack.take_next() {
                if self.emitter.is_due() {
                    self.emitter.send();
                }
                match next {
                    Next::Enter(name) => self.enter(dir, &name),
                    Next::Resume(progress) => self.read_dir(dir, *progress),
                }
                if self.context.queue.has_idle_worker() {
                    if let Some((dir, names)) = self.stack.share() {
                        self.queue_subdirs(dir, names);
                    }
                }
            }
            self.emitter.send();
            self.context.queue.mark_idle();
        }
    }

    fn start_job(&mut self, job: Job) {
        match job {
            Job::Root(index) => self.start_root(index),
            Job::Subdirs { dir, names } => self.stack.push_pending(dir, &names),
            Job::Names {
                dir,
                owner,
                mut dirents,
            } => {
                let mut progress = DirProgress::part(dir.number, owner);
                self.process_names(&dir, &mut progress, &mut dirents);
                self.emitter.emit_record(&mut progress, true);
                self.push_dir(dir, None);
            }
        }
    }

    fn start_root(&mut self, index: usize) {
        let root = &self.context.roots[index];
        let Ok(status) = self.calls.statx_fd(root.descriptor.as_fd(), DIR_MASK) else {
            return (self.emitter).emit_not_entered(NO_PARENT, &root.path, flag::UNREADABLE, None);
        };
        let dir = Dir {
            root: index,
            descriptor: Some(Arc::clone(&root.descriptor)),
            number: self.emitter.next_number(),
            inode: status.stx_ino,
            depth: 0,
        };
        let progress = DirProgress::new(dir.number, None, &root.path, &status);
        self.start_dir(dir, progress, &status);
    }

    fn enter(&mut self, parent: Dir, name: &CStr) {
        if self.context.limits.names_per_check.is_some() {
            self.context.examined.fetch_add(1, Relaxed);
        }
        let opened = self.calls.open_directory(parent.fd(), name);
        let opened = opened.and_then(|descriptor| {
            let status = self.calls.statx_fd(descriptor.as_fd(), DIR_MASK)?;
            Ok((descriptor, status))
        });
        let (descriptor, status) = match opened {
            Ok(pair) if self.is_on_device(&parent, &pair.1) => pair,
            Ok((_, status)) => {
                let flags = subvolume_flag(&status, false);
                self.emitter.emit_elsewhere(parent.number, name, flags);
                return self.ascend(&parent);
            }
            Err(error) => {
                self.emit_open_failure(&parent, name, error);
                return self.ascend(&parent);
            }
        };
        let dir = Dir {
            root: parent.root,
            descriptor: Some(Arc::new(descriptor)),
            number: self.emitter.next_number(),
            inode: status.stx_ino,
            depth: parent.depth + 1,
        };
        let progress = DirProgress::new(dir.number, Some(parent.number), name.to_bytes(), &status);
        drop(parent);
        self.start_dir(dir, progress, &status);
    }

    fn start_dir(&mut self, dir: Dir, mut progress: DirProgress, status: &Statx) {
        let user = &self.context.user;
        let fd = dir.fd();
        if !user.is_root() && !has_access(fd, Access::WRITE_OK | Access::EXEC_OK) {
            if !has_access(fd, Access::EXEC_OK) {
                // The names are readable, but stat of an entry is not possible.
                progress.record.flags = flag::UNREADABLE;
                self.emitter.emit_record(&mut progress, true);
                return self.ascend(&dir);
            }
            progress.record.flags |= flag::UNWRITABLE;
        }
        progress.record.flags |= user.dir_flags(status, fd);
        self.read_dir(dir, progress);
    }

    /// Reads a directory to its end, or until enough subdirectories are pending.
    fn read_dir(&mut self, dir: Dir, mut progress: DirProgress) {
        if self.read_names(&dir, &mut progress) {
            self.emitter.emit_record(&mut progress, false);
            return self.push_dir(dir, Some(Box::new(progress)));
        }
        if progress.entries >= MIN_WATCHED_ENTRIES {
            let now = self.calls.statx_fd(dir.fd(), StatxFlags::MTIME);
            if now.is_ok_and(|now| modified(&now) != progress.modified) {
                progress.record.flags |= flag::CHANGED;
            }
        }
        self.emitter.emit_record(&mut progress, true);
        self.push_dir(dir, None);
    }

    /// Returns whether there may be more to read.
    fn read_names(&mut self, dir: &Dir, progress: &mut DirProgress) -> bool {
        let context = self.context;
        while self.stack.pending_bytes() < context.limits.max_pending_bytes {
            let mut dirents = mem::take(&mut self.dirents);
            let buffer = self.buffer.spare_capacity_mut();
            dirents.clear();
            let add = |name: &CStr, kind, inode| dirents.add(kind, name, inode);
            let read = self.calls.read_names(dir.fd(), buffer, add);
            match read {
                Ok(Some(cookie)) => progress.cookie = cookie,
                ended => {
                    // ENOENT is the end of a removed directory, as in glibc's readdir.
                    if ended.is_err_and(|error| error != Errno::NOENT) {
                        progress.record.flags |= flag::UNREADABLE;
                    }
                    self.dirents = dirents;
                    return false;
                }
            }
            progress.entries += dirents.refs.len() as u64;
            let (queued, walkers) = (context.queue.queued_tasks(), context.queue.workers());
            let has_queue_space = walkers > 1 && queued < walkers;
            if dirents.refs.len() >= context.limits.min_shared_names && has_queue_space {
                self.queue_names(dir, progress, dirents);
                continue;
            }
            self.process_names(dir, progress, &mut dirents);
            self.dirents = dirents;
        }
        true
    }

    /// Adds the entries to the sums. Subdirectories are pending.
    fn process_names(&mut self, dir: &Dir, progress: &mut DirProgress, dirents: &mut NameBatch) {
        let context = self.context;
        if dirents.refs.len() >= context.limits.min_shared_names {
            dirents.sort();
        }
        let mut number = 0;
        while number < dirents.refs.len() {
            if let Some(per_check) = context.limits.names_per_check {
                context.examined.fetch_add(1, Relaxed);
                if number % per_check == 0 && context.queue.has_idle_worker() {
                    self.share_while_reading(dir, progress, dirents, number);
                }
            }
            let name = dirents.name(dirents.refs[number]);
            number += 1;
            if dir.depth == 0 && !context.filters.share_contains(name) {
                continue;
            }
            let is_clock_read = number % NAMES_PER_CLOCK_READ == 0;
            if (is_clock_read && self.emitter.is_due()) || progress.record.is_full() {
                self.emitter.emit_record(progress, false);
                self.emitter.send();
            }
            self.add_entry(dir, progress, name);
        }
    }

    /// Shares pending subdirectories, because a server answers for several directories at the same time;
    /// without any, half of the names that are not examined yet.
    fn share_while_reading(
        &mut self,
        dir: &Dir,
        progress: &mut DirProgress,
        dirents: &mut NameBatch,
        examined: usize,
    ) {
        if let Some((parent, names)) = self.stack.share() {
            // The unsent batch may refer to the directory that is being read.
            self.emitter.emit_record(progress, false);
            return self.queue_subdirs(parent, names);
        }
        let left = dirents.refs.len() - examined;
        let is_worth_sharing = left >= 2 * self.context.limits.names_per_check.unwrap_or(left);
        if !is_worth_sharing {
            return;
        }
        let shared = dirents.split_off((examined + dirents.refs.len()) / 2);
        self.queue_names(dir, progress, shared);
    }

    /// Queues names of a directory for another walker.
    fn queue_names(&mut self, dir: &Dir, progress: &mut DirProgress, dirents: NameBatch) {
        progress.record.pending += 1;
        self.emitter.emit_record(progress, false);
        self.emitter.send(); // before another walker emits their sums
        self.context.queue.push(Job::Names {
            dir: dir.clone(),
            owner: progress.owner,
            dirents,
        });
    }

    fn add_entry(&mut self, dir: &Dir, progress: &mut DirProgress, name: &CStr) {
        let fd = dir.fd();
        let status = match entry_status(fd, name) {
            Ok(status) => status,
            Err(Errno::NOENT) => {
                self.emitter.batch.vanished += 1;
                return;
            }
            Err(_) => {
                progress.record.flags |= flag::UNREADABLE;
                return;
            }
        };
        let filters = &self.context.filters;
        let (batch, histogram) = (&mut self.emitter.batch, &mut self.emitter.histogram);
        progress.add(name, &status, filters, histogram.as_mut(), batch);
        let is_mounted = status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
        if kind_of(&status) != FileType::Directory {
            return;
        }
        if self.is_on_device(dir, &status) && !is_mounted {
            self.stack.push_name(name);
            progress.record.pending += 1;
            return;
        }
        // Before Linux 5.8 only an attempt to open the directory detects a mount.
        let reports_mounts = (status.stx_attributes_mask).contains(StatxAttributes::MOUNT_ROOT);
        let is_mounted = is_mounted
            || !reports_mounts
                && (self.calls.open_directory(fd, name)).is_err_and(|error| error == Errno::XDEV);
        let flags = flag::ELSEWHERE | subvolume_flag(&status, is_mounted);
        self.emitter.emit_record(progress, false); // before the records of what is in it
        (self.emitter).emit_not_entered(dir.number as i64, name.to_bytes(), flags, None);
    }

    /// Returns whether an entry of a directory is on the file system of its root.
    fn is_on_device(&self, dir: &Dir, status: &Statx) -> bool {
        DevIno::from_statx(status).device == self.context.roots[dir.root].device
    }

    /// Pushes a directory with pending subdirectories or an unread rest, else ascends.
    fn push_dir(&mut self, dir: Dir, unfinished: Option<Box<DirProgress>>) {
        if let Err(dir) = self.stack.push(dir, unfinished) {
            self.ascend(&dir);
        }
    }

    /// Returns from a finished directory to the one on top of the stack, and opens it.
    fn ascend(&mut self, finished: &Dir) {
        let root = &self.context.roots[finished.root];
        while !self.stack.reopen_top(&self.calls, finished, root) {
            self.emit_unreachable();
        }
    }

    /// Emits what is pending in a directory that cannot be reached any more. It may still exist.
    fn emit_unreachable(&mut self) {
        let levels = self.stack.levels();
        while self.stack.levels() == levels {
            match self.stack.take_next() {
                Some((dir, Next::Enter(name))) => {
                    let name = name.to_bytes();
                    (self.emitter).emit_not_entered(
                        dir.number as i64,
                        name,
                        flag::UNREADABLE,
                        None,
                    );
                }
                Some((dir, Next::Resume(_))) => {
                    self.emitter.emit_decrement(dir.number, flag::UNREADABLE);
                }
                None => return,
            }
        }
    }

    /// Emits a directory that could not be opened.
    fn emit_open_failure(&mut self, parent: &Dir, name: &CStr, error: Errno) {
        let (flags, own) = match error {
            Errno::XDEV => return self.emitter.emit_elsewhere(parent.number, name, 0),
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => (flag::VANISHED, None),
            _ => (flag::UNREADABLE, entry_status(parent.fd(), name).ok()),
        };
        let name = name.to_bytes();
        (self.emitter).emit_not_entered(parent.number as i64, name, flags, own.as_ref());
    }

    /// Queues pending subdirectories for another walker.
    fn queue_subdirs(&mut self, dir: Dir, names: Box<[u8]>) {
        self.emitter.send(); // before another walker emits their entries
        self.context.queue.push(Job::Subdirs { dir, names });
    }
}

/// Not in `Syscalls`: counting and timing would cost too much for the most frequent call.
///
/// Does not ask a server if the kernel has the status cached.
fn entry_status(directory: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(directory, name, flags, ENTRY_MASK)
}

fn subvolume_flag(status: &Statx, is_mounted: bool) -> u32 {
    if status.stx_ino == BTRFS_SUBVOLUME_INODE && !is_mounted {
        flag::SUBVOLUME
    } else {
        0
    }
}

/// Returns whether the effective user has this access to a directory.
fn has_access(fd: BorrowedFd<'_>, access: Access) -> bool {
    match rustix::fs::accessat(fd, c".", access, AtFlags::EACCESS) {
        // ENOSYS: before Linux 5.8, and the effective user is not the real one.
        Ok(()) | Err(Errno::NOSYS) => true,
        // A seccomp filter that does not know faccessat2 may return these errors.
        Err(Errno::PERM | Errno::ACCESS) if getuid() == geteuid() && getgid() == getegid() => {
            rustix::fs::accessat(fd, c".", access, AtFlags::empty()).is_ok()
        }
        Err(_) => false,
    }
}
