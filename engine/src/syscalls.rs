//! The system calls on trees, each counted and timed.
//!
//! A worker owns one [`Syscalls`], and any thread may read its counts. No call here takes a path with a
//! slash: a path is opened component by component, from descriptor to descriptor.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom, Stat, Statx, StatxAttributes,
    StatxFlags,
};
use rustix::io::{Errno, Result};

use crate::identity::{DevIno, DirIdentity};

macro_rules! counted_calls {
    ($($call:ident $name:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Syscall {
            $($call,)*
        }

        pub const ALL_CALLS: &[(Syscall, &str)] = &[$((Syscall::$call, $name),)*];
    };
}

// Named as in strace. Unlinkat is first, so that its counter is next to that of directories in `Tally`.
counted_calls! {
    Unlinkat "unlinkat"
    Openat2 "openat2"
    Openat "openat"
    Fstat "fstat"
    Fstatfs "fstatfs"
    Statx "statx"
    Getdents64 "getdents64"
    Close "close"
    Lseek "lseek"
    Fcntl "fcntl"
    Fchdir "fchdir"
    Chdir "chdir"
    Ftruncate "ftruncate"
    Newfstatat "newfstatat"
}

/// Number, errors and total time of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCount {
    pub calls: u64,
    pub errors: u64,
    pub nanoseconds: u64,
}

#[derive(Default)]
struct Counter {
    successes: AtomicU64,
    errors: AtomicU64,
    nanoseconds: AtomicU64,
}

/// One worker's calls. Only its owner makes calls, so the counters need no atomic additions.
#[derive(Default)]
#[repr(C)] // counters first, in the order of `Syscall`
pub struct Syscalls {
    counters: [Counter; ALL_CALLS.len()],
    without_openat2: AtomicBool,
    without_statx: AtomicBool,
    without_large_reads: AtomicBool,
    removal_times: TimeSample,
}

/// openat2 may fail with EAGAIN after a rename elsewhere. A name alone has no `..`, so that is rare, but
/// a FUSE file system may return EAGAIN forever.
const MAX_TRIES: u32 = 100;

/// The buffer size of glibc's readdir, which every file system accepts.
const READDIR_BYTES: usize = 32 << 10;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

impl Syscalls {
    pub fn count(&self, call: Syscall) -> CallCount {
        let counter = &self.counters[call as usize];
        let errors = counter.errors.load(Relaxed);
        CallCount {
            calls: counter.successes.load(Relaxed) + errors,
            errors,
            nanoseconds: counter.nanoseconds.load(Relaxed),
        }
    }

    /// Adds the classes of the removals that were timed alone to these numbers.
    pub fn add_removal_times(&self, numbers: &mut [u64; TIME_CLASSES]) {
        let classes = self.removal_times.classes.iter().flatten();
        for (number, class) in numbers.iter_mut().zip(classes) {
            *number += u64::from(class.load(Relaxed));
        }
    }

    fn count_call<T>(&self, call: Syscall, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let result = make();
        self.add_time(call, began);
        self.add_call(call, &result);
        result
    }

    fn add_call<T>(&self, call: Syscall, result: &Result<T>) {
        let counter = &self.counters[call as usize];
        let total = match result {
            Ok(_) => &counter.successes,
            Err(_) => &counter.errors,
        };
        add(total, 1);
    }

    fn add_time(&self, call: Syscall, began: Instant) {
        let took_ns = began.elapsed().as_nanos() as u64;
        add(&self.counters[call as usize].nanoseconds, took_ns);
    }

    /// Opens a subdirectory. Follows no symbolic link and enters no mount.
    ///
    /// Returns `Errno::XDEV` if the name is a mount point.
    pub fn open_directory(&self, parent: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
        if !self.without_openat2.load(Relaxed) {
            let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
            for tries_left in (0..MAX_TRIES).rev() {
                let opened = self.count_call(Syscall::Openat2, || {
                    rustix::fs::openat2(parent, name, DIRECTORY, Mode::empty(), resolve)
                });
                match opened {
                    // A rename or mount on the system raced with the call.
                    Err(Errno::AGAIN | Errno::INTR) if tries_left > 0 => continue,
                    // Before 5.6; EPERM or EACCES may come from a filter that does not know the call.
                    // If the directory itself denies access, openat fails, too.
                    Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => break,
                    result => return result,
                }
            }
        }
        let opened = self.openat(parent, name, DIRECTORY)?;
        self.without_openat2.store(true, Relaxed);
        let mount = self.mount_id(opened.as_fd());
        match mount.and_then(|mount| Ok(mount == self.mount_id(parent)?)) {
            Ok(true) => Ok(opened),
            result => {
                self.close(opened);
                Err(result.err().unwrap_or(Errno::XDEV))
            }
        }
    }

    /// Opens the ancestor `levels` levels up by `..`. Fails with ESTALE if its identity is not the
    /// expected one, because a directory in between was moved.
    ///
    /// `identify` returns the identity of the ancestor.
    pub fn open_ancestor<Identity: PartialEq>(
        &self,
        descendant: BorrowedFd<'_>,
        levels: u64,
        expected: &Identity,
        identify: impl FnOnce(BorrowedFd<'_>) -> Result<Identity>,
    ) -> Result<OwnedFd> {
        let mut ancestor = self.openat(descendant, c"..", DIRECTORY)?;
        for _ in 1..levels {
            let opened = self.openat(&ancestor, c"..", DIRECTORY);
            self.close(ancestor);
            ancestor = opened?;
        }
        match identify(ancestor.as_fd()) {
            Ok(identity) if identity == *expected => Ok(ancestor),
            result => {
                self.close(ancestor);
                Err(result.err().unwrap_or(Errno::STALE))
            }
        }
    }

    /// Opens a name, never through a symbolic link.
    pub fn openat(&self, parent: impl AsFd, name: &CStr, flags: OFlags) -> Result<OwnedFd> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.count_call(Syscall::Openat, || {
            rustix::fs::openat(parent, name, flags, Mode::empty())
        })
    }

    /// Returns the mount id of a descriptor, from statx (5.8) or fdinfo in proc(5).
    fn mount_id(&self, descriptor: BorrowedFd<'_>) -> Result<u64> {
        use std::os::fd::AsRawFd;
        if let Ok(status) = self.statx_fd(descriptor, StatxFlags::MNT_ID) {
            if status.stx_mask & StatxFlags::MNT_ID.bits() != 0 {
                return Ok(status.stx_mnt_id);
            }
        }
        let path = format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd());
        // An error of proc must not be taken for ENOENT of the directory.
        let text =
            std::fs::read_to_string(path).map_err(|error| match Errno::from_io_error(&error) {
                Some(error @ (Errno::MFILE | Errno::NFILE)) => error,
                _ => Errno::NOSYS,
            })?;
        text.lines()
            .find_map(|line| line.strip_prefix("mnt_id:"))
            .and_then(|number| number.trim().parse().ok())
            .ok_or(Errno::NOSYS)
    }

    /// Returns the identity of a directory, and whether it is the root of a mount. That is `false`, too,
    /// if the kernel does not report it (before 5.8, or without statx).
    pub fn identify(&self, descriptor: BorrowedFd<'_>) -> Result<(DirIdentity, bool)> {
        if !self.without_statx.load(Relaxed) {
            match self.statx_fd(descriptor, StatxFlags::INO | StatxFlags::BTIME) {
                // Before 4.11, or under a filter that does not know statx.
                Err(Errno::NOSYS | Errno::PERM) => self.without_statx.store(true, Relaxed),
                result => {
                    return result.map(|status| {
                        let is_root = status.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
                        (DirIdentity::from_statx(&status), is_root)
                    })
                }
            }
        }
        let status = self.fstat(descriptor)?;
        let known = DirIdentity {
            dev_ino: DevIno::from_stat(&status),
            birth_ns: 0,
        };
        Ok((known, false))
    }

    pub fn fstat(&self, descriptor: BorrowedFd<'_>) -> Result<Stat> {
        self.count_call(Syscall::Fstat, || rustix::fs::fstat(descriptor))
    }

    /// Returns the magic number of a file system (statfs(2)).
    pub fn file_system_magic(&self, descriptor: BorrowedFd<'_>) -> Result<u64> {
        let status = self.count_call(Syscall::Fstatfs, || rustix::fs::fstatfs(descriptor))?;
        Ok(status.f_type as u64 & 0xffff_ffff)
    }

    pub fn stat(&self, parent: BorrowedFd<'_>, name: &CStr) -> Result<Stat> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        self.count_call(Syscall::Newfstatat, || {
            rustix::fs::statat(parent, name, flags)
        })
    }

    /// Does not ask a server if the kernel has the status cached.
    pub fn statx_fd(&self, descriptor: BorrowedFd<'_>, mask: StatxFlags) -> Result<Statx> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        self.count_call(Syscall::Statx, || {
            rustix::fs::statx(descriptor, c"", flags, mask)
        })
    }

    /// Removes a name that is not a directory.
    pub fn unlink(&self, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        self.unlink_batch().unlink(parent, name)
    }

    /// Starts a series of removals that are timed together.
    pub fn unlink_batch(&self) -> UnlinkBatch<'_> {
        UnlinkBatch {
            calls: self,
            began: None,
            calls_made: 0,
        }
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        self.unlink_batch().remove(parent, name, AtFlags::REMOVEDIR)
    }

    /// Closes a descriptor. The kernel does so even if it returns an error.
    pub fn close(&self, descriptor: impl Into<Option<OwnedFd>>) {
        if let Some(descriptor) = descriptor.into() {
            let _ = self.count_call(Syscall::Close, || {
                drop(descriptor);
                Ok(())
            });
        }
    }

    /// Changes the calling thread's current directory; see `sys::unshare_cwd`.
    pub fn fchdir(&self, directory: BorrowedFd<'_>) -> Result<()> {
        self.count_call(Syscall::Fchdir, || rustix::process::fchdir(directory))
    }

    /// Changes the calling thread's current directory to `/`.
    pub fn chdir_root(&self) -> Result<()> {
        self.count_call(Syscall::Chdir, || rustix::process::chdir(c"/"))
    }

    pub fn duplicate(&self, descriptor: BorrowedFd<'_>) -> Result<OwnedFd> {
        self.count_call(Syscall::Fcntl, || {
            rustix::io::fcntl_dupfd_cloexec(descriptor, 3)
        })
    }

    /// Sets the offset (getdents64) at which reading continues; 0 for the start.
    pub fn seek(&self, directory: BorrowedFd<'_>, cookie: u64) -> Result<()> {
        self.count_call(Syscall::Lseek, || {
            rustix::fs::seek(directory, SeekFrom::Start(cookie)).map(|_| ())
        })
    }

    /// Takes a write lease; see `sys::lease`.
    pub fn lease(&self, file: BorrowedFd<'_>) -> bool {
        let result = self.count_call(Syscall::Fcntl, || crate::sys::lease(file));
        result.is_ok()
    }

    /// Returns whether the lease is not broken.
    pub fn is_leased(&self, file: BorrowedFd<'_>) -> bool {
        let is_leased = self.count_call(Syscall::Fcntl, || crate::sys::is_leased(file));
        is_leased.unwrap_or(false)
    }

    pub fn truncate(&self, file: BorrowedFd<'_>, length: u64) -> Result<()> {
        self.count_call(Syscall::Ftruncate, || rustix::fs::ftruncate(file, length))
    }

    /// Reads the next names of a directory with one getdents64, without `.` and `..`.
    ///
    /// If the kernel rejects a large buffer, uses the size of the C library's readdir from then on.
    ///
    /// Returns the offset after the last name; `None` at the end of the directory.
    pub fn read_names(
        &self,
        directory: BorrowedFd<'_>,
        buffer: &mut [MaybeUninit<u8>],
        mut take: impl FnMut(&CStr, FileType, u64),
    ) -> Result<Option<u64>> {
        let is_large = buffer.len() > READDIR_BYTES;
        if is_large && !self.without_large_reads.load(Relaxed) {
            match self.read_buffer(directory, buffer, &mut take) {
                // EINVAL comes before any name, so no name is lost.
                Err(Errno::INVAL) => self.without_large_reads.store(true, Relaxed),
                read => return read,
            }
        }
        let small = buffer.len().min(READDIR_BYTES);
        self.read_buffer(directory, &mut buffer[..small], &mut take)
    }

    fn read_buffer(
        &self,
        directory: BorrowedFd<'_>,
        buffer: &mut [MaybeUninit<u8>],
        mut take: impl FnMut(&CStr, FileType, u64),
    ) -> Result<Option<u64>> {
        let mut reader = RawDir::new(directory, buffer);
        let mut cookie = None;
        loop {
            // With an empty buffer the next step calls getdents64. Do that once.
            let reader = &mut reader;
            let entry = match (reader.is_buffer_empty(), cookie) {
                (false, _) => reader.next().transpose()?,
                (true, None) => {
                    self.count_call(Syscall::Getdents64, move || reader.next().transpose())?
                }
                (true, Some(_)) => None,
            };
            let Some(entry) = entry else {
                return Ok(cookie);
            };
            cookie = Some(entry.next_entry_cookie());
            let name = entry.file_name();
            if name != c"." && name != c".." {
                take(name, entry.file_type(), entry.ino());
            }
        }
    }
}

/// Adds to a counter that no other thread changes.
pub fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Times of about one call in 16, each timed alone: two more clock readings for 16 removals.
#[derive(Default)]
struct TimeSample {
    calls_until_next: AtomicU32,
    phase: AtomicU64,
    classes: [[AtomicU32; CLASSES_PER_DOUBLING]; DOUBLINGS],
}

const CLASSES_PER_DOUBLING: usize = 4;
const DOUBLINGS: usize = 32;
pub const TIME_CLASSES: usize = CLASSES_PER_DOUBLING * DOUBLINGS;

/// The first class starts at 128 ns, less than any removal takes; the last one ends at 9 minutes.
const FIRST_DOUBLING: u32 = 7;

/// 2^64 divided by the golden ratio: the steps between samples never repeat a rhythm of the tree.
const GOLDEN_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl TimeSample {
    /// Counts a call; returns whether to time it alone. The steps are 1 to 31 calls, 16 on average.
    #[inline]
    fn is_due(&self) -> bool {
        let left = self.calls_until_next.load(Relaxed);
        if left > 0 {
            self.calls_until_next.store(left - 1, Relaxed);
            return false;
        }
        let phase = self.phase.load(Relaxed).wrapping_add(GOLDEN_STEP);
        self.phase.store(phase, Relaxed);
        let skipped = ((phase >> 32) * 31) >> 32;
        self.calls_until_next.store(skipped as u32, Relaxed);
        true
    }

    fn add(&self, took_ns: u64) {
        let class = time_class(took_ns);
        let class = &self.classes[class / CLASSES_PER_DOUBLING][class % CLASSES_PER_DOUBLING];
        class.store(class.load(Relaxed).saturating_add(1), Relaxed);
    }
}

fn time_class(took_ns: u64) -> usize {
    let took_ns = took_ns.max(1 << FIRST_DOUBLING);
    let doubling = took_ns.ilog2();
    let quarter = (took_ns >> (doubling - 2)) as usize % CLASSES_PER_DOUBLING;
    let class = (doubling - FIRST_DOUBLING) as usize * CLASSES_PER_DOUBLING + quarter;
    class.min(TIME_CLASSES - 1)
}

/// Returns the longest time in a class.
pub fn class_limit_ns(class: usize) -> u64 {
    let (doubling, quarter) = (class / CLASSES_PER_DOUBLING, class % CLASSES_PER_DOUBLING);
    (((CLASSES_PER_DOUBLING + quarter + 1) as u64) << (FIRST_DOUBLING as usize - 2 + doubling)) - 1
}

/// Successive removals; a few are timed together: two clock readings are a fiftieth of a
/// removal of four microseconds. The time between the removals is included; it is shorter than the
/// clock readings.
pub struct UnlinkBatch<'calls> {
    calls: &'calls Syscalls,
    began: Option<Instant>,
    calls_made: u32,
}

/// Calls that are counted before their time is added.
const MAX_TIMED_TOGETHER: u32 = 16;

impl UnlinkBatch<'_> {
    /// Removes a name that is not a directory.
    // Inline: with a return between two calls, each takes 0.6 microseconds longer in the kernel (AMD
    // EPYC, Linux 6.18).
    #[inline(always)]
    pub fn unlink(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        self.remove(parent, name, AtFlags::empty())
    }

    #[inline(always)]
    fn remove(&mut self, parent: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> Result<()> {
        self.began.get_or_insert_with(Instant::now);
        let sample = &self.calls.removal_times;
        let began_alone = sample.is_due().then(Instant::now);
        let result = rustix::fs::unlinkat(parent, name, flags);
        if let Some(began) = began_alone {
            sample.add(began.elapsed().as_nanos() as u64);
        }
        self.calls.add_call(Syscall::Unlinkat, &result);
        self.calls_made += 1;
        if self.calls_made == MAX_TIMED_TOGETHER {
            self.flush_time();
        }
        result
    }

    /// Adds the time of the calls so far. Must be called before any other work.
    #[inline]
    pub fn flush_time(&mut self) {
        if let Some(began) = self.began.take() {
            self.calls.add_time(Syscall::Unlinkat, began);
            self.calls_made = 0;
        }
    }
}

impl Drop for UnlinkBatch<'_> {
    fn drop(&mut self) {
        self.flush_time();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    #[test]
    fn calls_are_counted_and_timed_without_interruptions() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = File::open(scratch.path()).unwrap();
        let calls = Syscalls::default();
        let began = Instant::now();
        let mut unlinks = calls.unlink_batch();
        for _ in 0..2 * MAX_TIMED_TOGETHER + 1 {
            assert!(unlinks.unlink(directory.as_fd(), c"nothing").is_err());
        }
        let so_far = calls.count(Syscall::Unlinkat);
        assert_eq!(so_far.calls, u64::from(2 * MAX_TIMED_TOGETHER + 1));
        assert_eq!(so_far.errors, so_far.calls);
        unlinks.flush_time();
        let after_all = calls.count(Syscall::Unlinkat).nanoseconds;
        assert!(0 < so_far.nanoseconds && so_far.nanoseconds < after_all);
        let took = began.elapsed();
        sleep(Duration::from_millis(20));
        unlinks.flush_time();
        drop(unlinks);
        assert_eq!(calls.count(Syscall::Unlinkat).nanoseconds, after_all);
        assert!(u128::from(after_all) <= took.as_nanos());
    }

    #[test]
    fn each_time_is_in_the_class_up_to_the_next_limit() {
        for class in 0..TIME_CLASSES - 1 {
            let limit_ns = class_limit_ns(class);
            assert_eq!(time_class(limit_ns), class);
            assert_eq!(time_class(limit_ns + 1), class + 1);
            assert!(class_limit_ns(class + 1) <= limit_ns + limit_ns / 4 + 1);
        }
        assert_eq!(time_class(0), 0);
        assert_eq!(time_class(u64::MAX), TIME_CLASSES - 1);
    }

    #[test]
    fn removals_of_every_rhythm_are_sampled_alike() {
        let sample = TimeSample::default();
        for rhythm in 2..=64 {
            let mut sampled = vec![0_u32; rhythm];
            for call in 0..3_200 * rhythm {
                sampled[call % rhythm] += u32::from(sample.is_due());
            }
            assert!(
                sampled.iter().all(|number| (120..=280).contains(number)),
                "{rhythm}: {sampled:?}"
            );
        }
    }

    #[test]
    fn single_removals_and_batches_are_sampled_together() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = File::open(scratch.path()).unwrap();
        let calls = Syscalls::default();
        for _ in 0..160 {
            let mut unlinks = calls.unlink_batch();
            assert!(unlinks.unlink(directory.as_fd(), c"nothing").is_err());
            drop(unlinks);
            assert!(calls.rmdir(directory.as_fd(), c"nothing").is_err());
            assert!(calls.stat(directory.as_fd(), c"nothing").is_err());
        }
        let mut numbers = [0; TIME_CLASSES];
        calls.add_removal_times(&mut numbers);
        assert!(
            (18..=22).contains(&numbers.iter().sum::<u64>()),
            "{numbers:?}"
        );
    }
}
