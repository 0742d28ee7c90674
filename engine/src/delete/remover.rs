//! Removes the names of a directory, subject to the filters and the throttle.

use std::ffi::CStr;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Release};
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use rustix::fs::{FileType, OFlags, Stat, CWD};
use rustix::io::{Errno, Result};

use super::throttle::{Cancelled, Throttle};
use crate::file_systems::FileSystem;
use crate::filters::Filters;
use crate::names::NameBatch;
use crate::syscalls::Syscalls;

/// The result of work that a cancellation ends.
pub type Outcome<T> = std::result::Result<T, Cancelled>;

/// Reports a failed operation on a name.
pub type Report<'a> = &'a mut dyn FnMut(&CStr, &str, Errno);

/// A file whose status is older is checked again before its removal.
const MAX_STAT_AGE: Duration = Duration::from_millis(50);

/// Opening a type other than a regular file like this may have side effects.
const FOR_WRITING: OFlags = (OFlags::WRONLY)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// Gentle mode truncates larger files in steps of this size before their space is freed, so that
/// others can use the disk.
const STEP_BYTES: u64 = 256 << 20;

/// One worker's counts.
// Aligned so that no two workers share a cache line. The counters of a removal are in one line,
// because the kernel evicts most lines from the processor's caches during a removal.
#[derive(Default)]
#[repr(C, align(128))]
pub struct Tally {
    pub directories: AtomicU64,
    pub calls: Syscalls,
}

/// One worker's unlinker, with its counters.
pub struct Remover<'run> {
    throttle: &'run Throttle,
    filters: &'run Filters,
    pub tally: &'run Tally,
    has_private_cwd: bool,
    /// Changes with every change of the current directory; invalidates older tokens.
    generation: u64,
    /// The current directory is inside a target.
    is_inside: bool,
    /// A directory was removed since the last fchdir, probably the current one.
    is_cwd_removed: bool,
}

/// Proof that this thread's current directory is a certain directory, so that unlinkat(AT_FDCWD)
/// saves the kernel the descriptor lookup and a reference for each name.
///
/// It is empty if the thread has no private current directory or fchdir failed, and it is invalid
/// after the next change of the current directory.
#[derive(Clone, Copy)]
pub struct CwdToken(Option<(u64, RawFd)>);

impl<'run> Remover<'run> {
    /// Must be called in the thread that uses it, because it unshares the current directory of this
    /// thread.
    pub fn new(throttle: &'run Throttle, filters: &'run Filters, tally: &'run Tally) -> Self {
        Self {
            throttle,
            filters,
            tally,
            has_private_cwd: crate::sys::unshare_cwd().is_ok(),
            generation: 0,
            is_inside: false,
            is_cwd_removed: false,
        }
    }

    /// Changes the current directory to one whose names are removed next.
    pub fn enter_dir(&mut self, directory: BorrowedFd<'_>) -> CwdToken {
        self.generation += 1;
        let is_inside = self.has_private_cwd && self.tally.calls.fchdir(directory).is_ok();
        self.is_inside |= is_inside;
        self.is_cwd_removed = false;
        CwdToken(is_inside.then_some((self.generation, directory.as_raw_fd())))
    }

    /// Changes the current directory to `/`. A removed current directory would keep its space, and
    /// its file system in use.
    pub fn leave_dir(&mut self) {
        self.generation += 1;
        self.is_cwd_removed = false;
        if self.is_inside {
            self.is_inside = self.tally.calls.chdir_root().is_err(); // then it stays to the end
        }
    }

    /// Leaves a removed current directory before the next directory is removed.
    ///
    /// The current directory is removed if this is the second call since the last fchdir. It pins
    /// the dentries of all removed directories above it, and the kernel would visit each of them
    /// for each further rmdir (`shrink_dcache_parent`), which is most of its work in a deep chain.
    pub fn leave_removed_dir(&mut self) {
        if std::mem::replace(&mut self.is_cwd_removed, self.is_inside) {
            self.leave_dir();
        }
    }

    /// Returns the dirfd for calls in a directory: `AT_FDCWD` if the token is valid.
    pub fn dirfd<'fd>(&self, directory: BorrowedFd<'fd>, cwd: CwdToken) -> BorrowedFd<'fd> {
        match cwd {
            CwdToken(Some(token)) if token == (self.generation, directory.as_raw_fd()) => CWD,
            _ => directory,
        }
    }

    /// Returns whether names are removed without a check between them: no filter by status, no
    /// throttle.
    #[inline]
    pub fn is_unrestricted(&self) -> bool {
        !self.filters.need_status() && self.throttle.is_open() && !self.throttle.is_gentle()
    }

    /// Removes a range of names of one directory.
    ///
    /// `cwd` is the token of `enter_dir` for this directory. `progress` receives the index of each
    /// name before its removal.
    pub fn remove_names(
        &mut self,
        directory: BorrowedFd<'_>,
        cwd: CwdToken,
        batch: &NameBatch,
        range: Range<usize>,
        progress: Option<&AtomicUsize>,
        report: Report<'_>,
    ) -> Outcome<()> {
        let (opened, directory) = (directory, self.dirfd(directory, cwd));
        let mut unlinks = self.tally.calls.unlink_batch();
        for at in range {
            if let Some(progress) = progress {
                progress.store(at, Release);
            }
            let name = batch.name(batch.refs[at]);
            let is_unrestricted = self.is_unrestricted();
            if !is_unrestricted {
                unlinks.flush_time();
                if !self.wait_until_selected(directory, name, report)? {
                    continue;
                }
            }
            let mut is_retried = false;
            let result = loop {
                let result = if is_unrestricted {
                    unlinks.unlink(directory, name)
                } else if self.throttle.is_gentle() {
                    self.unlink_truncating(directory, name)
                } else {
                    self.tally.calls.unlink(directory, name)
                };
                match result {
                    // The server no longer knew the entry; the name is looked up again.
                    Err(Errno::STALE) if !is_retried => is_retried = true,
                    result => break result,
                }
            };
            match result {
                Ok(()) | Err(Errno::NOENT) => (), // or another process removed it
                // The name is a directory now. The rmdir of its parent fails with ENOTEMPTY, and the
                // parent is read again. With filters no rmdir follows, so it is a failure.
                Err(Errno::ISDIR) if !self.filters.are_active() => (),
                Err(error) if self.has_vanished(opened, error) => (),
                Err(error) => {
                    unlinks.flush_time();
                    report(name, "remove", error);
                }
            }
        }
        Ok(())
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        let rmdir = || self.tally.calls.rmdir(parent, name);
        match rmdir() {
            Err(Errno::STALE) => rmdir()?, // see `remove_names`
            result => result?,
        }
        crate::syscalls::add(&self.tally.directories, 1);
        Ok(())
    }

    /// Returns whether a call on a name in a directory failed because another process removed the
    /// directory. A server then reports ESTALE, a local file system ENOENT.
    ///
    /// The rmdir of a directory above detects entries that are left. With filters no rmdir follows.
    pub fn has_vanished(&self, directory: BorrowedFd<'_>, error: Errno) -> bool {
        error == Errno::STALE
            && !self.filters.are_active()
            && match self.tally.calls.fstat(directory) {
                Ok(status) => status.st_nlink == 0,
                Err(error) => matches!(error, Errno::STALE | Errno::NOENT),
            }
    }

    /// Waits for admission of a removal; returns whether the filters select the name then.
    fn wait_until_selected(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &CStr,
        report: Report<'_>,
    ) -> Outcome<bool> {
        self.throttle.admit(false)?;
        let checked_at = self.filters.need_status().then(Instant::now);
        if !self.is_selected(directory, name, report) {
            return Ok(false);
        }
        // A pause may outdate the status. A pause by SIGSTOP shows only in the clock.
        let was_delayed = self.throttle.admit(true)?;
        let is_old = was_delayed || checked_at.is_some_and(|at| at.elapsed() > MAX_STAT_AGE);
        Ok(!is_old || self.is_selected(directory, name, report))
    }

    /// Returns whether the filters select a name by its status. The name itself has matched.
    fn is_selected(&self, directory: BorrowedFd<'_>, name: &CStr, report: Report<'_>) -> bool {
        if !self.filters.need_status() {
            return true;
        }
        match self.tally.calls.stat(directory, name) {
            Ok(status) => self.filters.matches_stat(&status),
            Err(Errno::NOENT) => false,
            Err(error) => {
                report(name, "stat", error);
                false
            }
        }
    }

    /// Removes a name. If it was the last one of a large file that is not open, truncates the file
    /// in steps.
    fn unlink_truncating(&mut self, directory: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        let calls = &self.tally.calls;
        let is_large = calls
            .stat(directory, name)
            .is_ok_and(|status| is_file(&status) && allocated_bytes(&status) > STEP_BYTES);
        let opened = is_large.then(|| calls.openat(directory, name, FOR_WRITING));
        let Some(Ok(file)) = opened else {
            return calls.unlink(directory, name);
        };
        let before = calls.fstat(file.as_fd());
        let result = calls.unlink(directory, name);
        if let (Ok(before), Ok(())) = (before, result) {
            self.truncate_in_steps(file.as_fd(), &before);
        }
        self.tally.calls.close(file);
        result
    }

    /// Truncates an unlinked file in steps while it has no name and no other open descriptor. A
    /// process that reads the file would see it shrink.
    fn truncate_in_steps(&mut self, file: BorrowedFd<'_>, before: &Stat) {
        let calls = &self.tally.calls;
        let is_reliable = FileSystem::of(file, calls).is_ok_and(|known| known.has_reliable_leases);
        let is_nameless = calls
            .fstat(file)
            .is_ok_and(|now| is_file(&now) && now.st_nlink == 0);
        if !is_reliable || before.st_nlink != 1 || !is_nameless || !calls.lease(file) {
            return;
        }
        let mut length = before.st_size as u64;
        // The cost of a step depends on blocks, and a sparse file has few for its length.
        let steps = allocated_bytes(before).div_ceil(STEP_BYTES).max(1);
        let step = length.div_ceil(steps).max(1);
        while length > step && self.tally.calls.is_leased(file) {
            length -= step;
            let is_truncated = self.tally.calls.truncate(file, length).is_ok();
            if !is_truncated || self.throttle.admit(false).is_err() {
                break; // close() frees the rest
            }
        }
    }
}

fn is_file(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
}

fn allocated_bytes(status: &Stat) -> u64 {
    status.st_blocks as u64 * 512
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::thread::{scope, sleep, yield_now};

    use super::*;
    use crate::syscalls::Syscall;

    const NAMES: usize = 300_000;
    const PAUSE: Duration = Duration::from_millis(300);

    #[test]
    fn names_are_removed_from_their_own_directory_after_any_chdir() {
        let filters = Filters::default();
        let (throttle, tally) = (Throttle::new(1, None, false), Tally::default());
        let mut batch = NameBatch::default();
        batch.add(FileType::RegularFile, c"name", 0);
        let cases = [(0, true), (1, true), (2, true), (3, true), (0, false)];
        for (chdir, may_have_private_cwd) in cases {
            let scratch = tempfile::tempdir().unwrap();
            let [target, other_dir] = ["target", "other"].map(|name| {
                let path = scratch.path().join(name);
                std::fs::create_dir(&path).unwrap();
                std::fs::write(path.join("name"), "").unwrap();
                File::open(path).unwrap()
            });
            scope(|threads| {
                threads.spawn(|| {
                    let mut remover = Remover::new(&throttle, &filters, &tally);
                    remover.has_private_cwd &= may_have_private_cwd;
                    remover.enter_dir(other_dir.as_fd());
                    let cwd = remover.enter_dir(target.as_fd());
                    let cwd = match chdir {
                        1 => {
                            remover.enter_dir(other_dir.as_fd());
                            cwd
                        }
                        2 => {
                            remover.leave_dir();
                            cwd
                        }
                        3 => remover.enter_dir(other_dir.as_fd()), // a token of another directory
                        _ => cwd,
                    };
                    let mut report = |_: &CStr, _: &str, error| panic!("{error}");
                    remover
                        .remove_names(target.as_fd(), cwd, &batch, 0..1, None, &mut report)
                        .unwrap();
                });
            });
            assert!(!scratch.path().join("target/name").exists());
            assert!(scratch.path().join("other/name").exists());
        }
    }

    #[test]
    fn current_directory_of_other_threads_does_not_change() {
        let filters = Filters::default();
        let (throttle, tally) = (Throttle::new(1, None, false), Tally::default());
        let scratch = tempfile::tempdir().unwrap();
        let directory = File::open(scratch.path()).unwrap();
        let before = std::env::current_dir().unwrap();
        let observed = scope(|threads| {
            let change = || {
                let mut remover = Remover::new(&throttle, &filters, &tally);
                let cwd = remover.enter_dir(directory.as_fd());
                let inside = std::env::current_dir().unwrap();
                remover.leave_dir();
                (cwd.0.is_some(), inside, std::env::current_dir().unwrap())
            };
            threads.spawn(change).join().unwrap()
        });
        let inside = scratch.path().canonicalize().unwrap();
        let unchanged = (false, before.clone(), before.clone());
        assert!(observed == (true, inside, "/".into()) || observed == unchanged);
        assert_eq!(std::env::current_dir().unwrap(), before);
    }

    #[test]
    fn pause_does_not_count_as_time_of_a_call() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = File::open(scratch.path()).unwrap();
        let mut batch = NameBatch::default();
        for _ in 0..NAMES {
            batch.add(FileType::RegularFile, c"gone already", 0);
        }
        let was_paused_midway = (0..20).any(|_| {
            let filters = Filters::default();
            let (throttle, tally) = (Throttle::new(1, None, false), Tally::default());
            let count = || tally.calls.count(Syscall::Unlinkat);
            let began = Instant::now();
            let is_midway = scope(|threads| {
                threads.spawn(|| {
                    let mut remover = Remover::new(&throttle, &filters, &tally);
                    throttle.acquire_slot();
                    let cwd = remover.enter_dir(directory.as_fd());
                    let (dirfd, mut report) = (directory.as_fd(), |_: &CStr, _: &str, _| ());
                    remover
                        .remove_names(dirfd, cwd, &batch, 0..NAMES, None, &mut report)
                        .unwrap();
                });
                while count().calls == 0 {
                    yield_now();
                }
                throttle.set_paused(true);
                sleep(PAUSE / 10);
                let before = count().calls;
                sleep(PAUSE);
                let is_midway = before < NAMES as u64 && count().calls == before;
                throttle.set_paused(false);
                is_midway
            });
            let worked = began.elapsed() - PAUSE;
            assert!(!is_midway || u128::from(count().nanoseconds) < worked.as_nanos());
            is_midway
        });
        assert!(was_paused_midway);
    }
}
