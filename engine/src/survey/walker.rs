//! Walking a tree by directory descriptors, symbolic links never followed, mounts never entered.
//!
//! Only directories that still have unread subdirectories stay on the stack, and only some of
//! those keep their descriptor; the way back up is `..`, compared by device and inode. So a tree
//! of any depth is walked with a bounded number of descriptors, and a chain costs no memory.

use std::ffi::CStr;
use std::mem;
use std::sync::Arc;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{Access, AtFlags, FileType, Statx, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid, getgid, getuid};

use super::context::Shared;
use super::dir_reader::{modified, Reading};
use super::dirent_batch::Slice;
use super::emitter::Teller;
use super::pool::{Job, Place};
use super::records::flag;
use super::stack::{Level, Stack};
use super::tally::{device_of, index_of, kind_of, ENTRY};
use crate::syscalls::Calls;

/// From here on it is looked at whether a directory has changed while it was read.
const WATCHED_FROM_ENTRIES: u64 = 1_000;

/// Names between two looks at the clock.
const NAMES_AT_ONCE: usize = 256;

const BTRFS_SUBVOLUME_INODE: u64 = 256;

/// What must be known of a directory itself.
const DIRECTORY: StatxFlags = ENTRY.union(StatxFlags::GID);

/// One of those that read directories, each in a thread of its own.
pub struct Walker<'a> {
    pub(super) shared: &'a Shared,
    calls: Calls,
    root: usize,
    stack: Stack,
    buffer: Vec<u8>,
    slice: Slice,
    teller: Teller<'a>,
}

impl<'a> Walker<'a> {
    pub fn new(shared: &'a Shared) -> Self {
        Self {
            shared,
            calls: Calls::new(false),
            root: 0,
            stack: Stack::new(shared.limits.open),
            buffer: Vec::with_capacity(shared.limits.buffer_bytes),
            slice: Slice::default(),
            teller: Teller::new(shared),
        }
    }

    /// Works until there is nothing left for anybody.
    pub fn run(mut self) {
        while let Some(job) = self.shared.pool.next() {
            self.begin(job);
            while let Some(level) = self.stack.pop() {
                if self.teller.is_due() {
                    self.teller.send();
                }
                self.go_on(level);
            }
            self.teller.send();
        }
    }

    fn begin(&mut self, job: Job) {
        match job {
            Job::Root(index) => self.begin_root(index),
            Job::Directories { place, names } => {
                self.root = place.root;
                self.stack.push_waiting(place, &names);
            }
            Job::Names {
                place,
                owner,
                mut slice,
            } => {
                self.root = place.root;
                let mut reading = Reading::part(owner);
                self.look_at(&place, &mut reading, &mut slice);
                self.teller.piece(place.number, &mut reading, true);
                self.keep(place, None);
            }
        }
    }

    fn begin_root(&mut self, index: usize) {
        let root = &self.shared.roots[index];
        let number = self.teller.number();
        self.root = index;
        let Ok(status) = self.calls.statx_of(root.descriptor.as_fd(), DIRECTORY) else {
            return self.teller.unreadable(number, &root.path);
        };
        let place = Place {
            root: index,
            descriptor: Arc::clone(&root.descriptor),
            number,
            inode: status.stx_ino,
            depth: 0,
        };
        self.read_whole(place, Reading::new(None, &root.path, &status), &status);
    }

    /// Reads the next subdirectory of the directory that was on top of the stack, or its rest.
    fn go_on(&mut self, mut level: Level) {
        let Some(above) = level.place(self.root) else {
            return; // never: what is on top is open
        };
        match self.stack.take_name(&mut level) {
            Some(name) => {
                self.stack.put_back(level);
                self.enter(above, &name);
            }
            None => {
                if let Some(reading) = level.rest {
                    self.read(above, *reading);
                }
            }
        }
        if self.shared.pool.is_wanted() {
            self.give_directories();
        }
    }

    fn enter(&mut self, above: Place, name: &CStr) {
        let opened = self.calls.open_directory(above.descriptor.as_fd(), name);
        let looked = opened.and_then(|descriptor| {
            let status = self.calls.statx_of(descriptor.as_fd(), DIRECTORY)?;
            Ok((descriptor, status))
        });
        let (descriptor, status) = match looked {
            Ok(both) if device_of(&both.1) == self.device() => both,
            Ok((_, status)) => {
                let flags = subvolume_flag(&status, false);
                self.teller.entered_elsewhere(above.number, name, flags);
                return self.leave(&above);
            }
            Err(why) => {
                self.tell_closed(&above, name, why);
                return self.leave(&above);
            }
        };
        let place = Place {
            root: self.root,
            descriptor: Arc::new(descriptor),
            number: self.teller.number(),
            inode: status.stx_ino,
            depth: above.depth + 1,
        };
        let reading = Reading::new(Some(above.number), name.to_bytes(), &status);
        drop(above);
        self.read_whole(place, reading, &status);
    }

    fn read_whole(&mut self, place: Place, mut reading: Reading, status: &Statx) {
        let user = &self.shared.user;
        let directory = place.descriptor.as_fd();
        if !user.is_root() && !may(directory, Access::WRITE_OK | Access::EXEC_OK) {
            if !may(directory, Access::EXEC_OK) {
                // Its names could be read, but nothing could be known of what they stand for.
                reading.tally.flags = flag::UNREADABLE;
                self.teller.piece(place.number, &mut reading, true);
                return self.leave(&place);
            }
            reading.tally.flags |= flag::UNWRITABLE;
        }
        reading.tally.flags |= user.flags_of(status, directory);
        self.read(place, reading);
    }

    /// Reads a directory to its end, or until enough subdirectories wait.
    fn read(&mut self, place: Place, mut reading: Reading) {
        if self.read_some(&place, &mut reading) {
            self.teller.piece(place.number, &mut reading, false);
            return self.keep(place, Some(Box::new(reading)));
        }
        if reading.entries >= WATCHED_FROM_ENTRIES {
            let directory = place.descriptor.as_fd();
            let now = self.calls.statx_of(directory, StatxFlags::MTIME);
            if now.is_ok_and(|now| modified(&now) != reading.modified) {
                reading.tally.flags |= flag::CHANGED;
            }
        }
        self.teller.piece(place.number, &mut reading, true);
        self.keep(place, None);
    }

    /// Returns whether there may be more to read.
    fn read_some(&mut self, place: &Place, reading: &mut Reading) -> bool {
        let shared = self.shared;
        while self.stack.waiting_bytes() < shared.limits.waiting_bytes {
            let mut slice = mem::take(&mut self.slice);
            let buffer = self.buffer.spare_capacity_mut();
            let read = slice.fill(&self.calls, place.descriptor.as_fd(), buffer);
            match read {
                Ok(Some(cookie)) => reading.cookie = cookie,
                ended => {
                    // Without ENOENT: as in glibc's readdir, a removed directory is at its end.
                    if ended.is_err_and(|why| why != Errno::NOENT) {
                        reading.tally.flags |= flag::UNREADABLE;
                    }
                    self.slice = slice;
                    return false;
                }
            }
            reading.entries += slice.len() as u64;
            if slice.len() >= shared.limits.names_given && shared.pool.has_room() {
                reading.pending += 1;
                self.teller.piece(place.number, reading, false);
                self.teller.send();
                shared.pool.give(Job::Names {
                    place: place.clone(),
                    owner: reading.tally.owner(),
                    slice,
                });
                continue;
            }
            self.look_at(place, reading, &mut slice);
            self.slice = slice;
        }
        true
    }

    /// Adds what the names stand for; subdirectories wait.
    fn look_at(&mut self, place: &Place, reading: &mut Reading, slice: &mut Slice) {
        let shared = self.shared;
        if !shared.names_only && slice.len() >= shared.limits.names_given {
            slice.sort();
        }
        for (number, (name, kind)) in slice.iter().enumerate() {
            if number % NAMES_AT_ONCE == NAMES_AT_ONCE - 1 && self.teller.is_due() {
                self.teller.piece(place.number, reading, false);
                self.teller.send();
            }
            if shared.names_only && kind != FileType::Unknown {
                self.add_name(reading, name, kind);
            } else {
                self.add(place, reading, name);
            }
        }
    }

    fn add_name(&mut self, reading: &mut Reading, name: &CStr, kind: FileType) {
        reading.tally.add_name(name, kind);
        let filters = self.shared.filters.as_ref();
        if kind == FileType::Directory {
            self.stack.wait(name);
            reading.pending += 1;
        } else if filters.is_some_and(|filters| filters.match_name(name)) {
            self.teller.batch.matched[index_of(kind)] += 1;
        }
    }

    fn add(&mut self, place: &Place, reading: &mut Reading, name: &CStr) {
        let directory = place.descriptor.as_fd();
        // Neither counted nor timed, for this is most of what a survey does.
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        let status = match rustix::fs::statx(directory, name, flags, ENTRY) {
            Ok(status) => status,
            Err(Errno::NOENT) => {
                self.teller.batch.vanished += 1;
                return;
            }
            Err(_) => {
                reading.tally.flags |= flag::UNREADABLE;
                return;
            }
        };
        let filters = self.shared.filters.as_ref();
        let batch = &mut self.teller.batch;
        (reading.tally).add(name, &status, place.number, filters, batch);
        let is_mounted = status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
        if kind_of(&status) != FileType::Directory {
            return;
        }
        if device_of(&status) == self.device() && !is_mounted {
            self.stack.wait(name);
            reading.pending += 1;
            return;
        }
        // Before Linux 5.8 it shows only when one tries to go there.
        let can_tell = (status.stx_attributes_mask).contains(StatxAttributes::MOUNT_ROOT);
        let is_mounted = is_mounted
            || !can_tell
                && (self.calls.open_directory(directory, name))
                    .is_err_and(|why| why == Errno::XDEV);
        let flags = flag::ELSEWHERE | subvolume_flag(&status, is_mounted);
        reading.elsewhere.push((name.to_bytes().to_vec(), flags));
    }

    fn device(&self) -> u64 {
        self.shared.roots[self.root].device
    }

    /// Keeps a directory if subdirectories of it wait or its rest does, else goes back up.
    fn keep(&mut self, place: Place, rest: Option<Box<Reading>>) {
        if let Err(place) = self.stack.push(place, rest) {
            self.leave(&place);
        }
    }

    /// Goes on from a finished directory to the one on top of the stack: opens that one.
    fn leave(&mut self, finished: &Place) {
        let root = &self.shared.roots[self.root];
        while let Some(top) = self.stack.closed_top() {
            if let Some(descriptor) = top.open_again(&self.calls, finished, root) {
                return self.stack.reopen_top(descriptor);
            }
            self.tell_lost();
        }
    }

    /// Tells the directories to which the way is lost: nobody knows whether they are gone.
    fn tell_lost(&mut self) {
        let Some(mut level) = self.stack.pop() else {
            return;
        };
        while let Some(name) = self.stack.take_name(&mut level) {
            let name = name.to_bytes();
            (self.teller).not_entered(level.number, name, flag::UNREADABLE, None);
        }
        if level.rest.is_some() {
            self.teller.one_less(level.number, flag::UNREADABLE);
        }
    }

    /// Tells a directory that could not be opened.
    fn tell_closed(&mut self, above: &Place, name: &CStr, why: Errno) {
        let number = above.number;
        match why {
            Errno::XDEV => self.teller.entered_elsewhere(number, name, 0),
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => {
                let flags = flag::VANISHED;
                self.teller
                    .not_entered(number, name.to_bytes(), flags, None);
            }
            _ => {
                let looked = self.calls.statx(above.descriptor.as_fd(), name, ENTRY);
                let (own, flags) = (looked.as_ref().ok(), flag::UNREADABLE);
                self.teller.not_entered(number, name.to_bytes(), flags, own);
            }
        }
    }

    /// Gives subdirectories that wait to somebody who has nothing to do.
    fn give_directories(&mut self) {
        if let Some((place, names)) = self.stack.share(self.root) {
            self.teller.send(); // before somebody else tells what is in them
            self.shared.pool.give(Job::Directories { place, names });
        }
    }
}

fn subvolume_flag(status: &Statx, is_mounted: bool) -> u32 {
    if status.stx_ino == BTRFS_SUBVOLUME_INODE && !is_mounted {
        flag::SUBVOLUME
    } else {
        0
    }
}

/// Asks the kernel what the effective user may do in a directory.
fn may(directory: BorrowedFd<'_>, access: Access) -> bool {
    match rustix::fs::accessat(directory, c".", access, AtFlags::EACCESS) {
        // ENOSYS: before Linux 5.8, and the effective user is not the real one.
        Ok(()) | Err(Errno::NOSYS) => true,
        // The answer may be that of a filter that does not know faccessat2.
        Err(Errno::PERM | Errno::ACCESS) if is_real_user() => {
            rustix::fs::accessat(directory, c".", access, AtFlags::empty()).is_ok()
        }
        Err(_) => false,
    }
}

fn is_real_user() -> bool {
    getuid() == geteuid() && getgid() == getegid()
}
