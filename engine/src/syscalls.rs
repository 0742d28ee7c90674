//! The system calls the engine makes on trees, each counted and timed.
//!
//! A worker owns one [`Calls`]; any thread may read it. Nothing here takes a path with a slash in
//! it: whoever wants to go somewhere goes there name by name, from descriptor to descriptor.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use rustix::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom, Stat, Statx, StatxAttributes,
    StatxFlags,
};
use rustix::io::{Errno, Result};

use crate::identity::{DevIno, DirIdentity};

mod unlink_batch;
pub use unlink_batch::Unlinks;

/// The calls that are counted, by the names that strace shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Call {
    Unlinkat, // the first: its counter lies beside what `Tally` counts of the same removals
    Openat2,
    Openat,
    Fstat,
    Fstatfs,
    Statx,
    Getdents64,
    Close,
    Lseek,
    Fcntl,
    Fchdir,
    Chdir,
    Ftruncate,
    Newfstatat,
}

pub const CALLS: [(Call, &str); 14] = [
    (Call::Unlinkat, "unlinkat"),
    (Call::Openat2, "openat2"),
    (Call::Openat, "openat"),
    (Call::Fstat, "fstat"),
    (Call::Fstatfs, "fstatfs"),
    (Call::Statx, "statx"),
    (Call::Getdents64, "getdents64"),
    (Call::Close, "close"),
    (Call::Lseek, "lseek"),
    (Call::Fcntl, "fcntl"),
    (Call::Fchdir, "fchdir"),
    (Call::Chdir, "chdir"),
    (Call::Ftruncate, "ftruncate"),
    (Call::Newfstatat, "newfstatat"),
];

/// How often a call returned, how often with an error, and how long that took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub calls: u64,
    pub errors: u64,
    pub nanoseconds: u64,
}

#[derive(Default)]
struct Counter {
    calls: AtomicU64,
    errors: AtomicU64,
    nanoseconds: AtomicU64,
}

/// One worker's calls. Only its owner makes calls through it, so plain additions suffice.
#[derive(Default)]
#[repr(C)] // the counters in the order of the calls
pub struct Calls {
    counters: [Counter; CALLS.len()],
    without_openat2: AtomicBool,
    without_statx: AtomicBool,
    without_large_reads: AtomicBool,
}

/// A name alone has no `..` in it, for which the kernel would say so often that it must be tried
/// again; a file system of somebody's own may say it for ever.
const TRIES: u32 = 100;

/// The buffer of glibc's readdir, which every file system has to take.
const READDIR_BYTES: usize = 32 << 10;

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

impl Calls {
    /// Counts nothing yet; `without_openat2` makes it do as on kernels before 5.6.
    pub fn new(without_openat2: bool) -> Self {
        Self {
            without_openat2: AtomicBool::new(without_openat2),
            ..Self::default()
        }
    }

    /// The counts so far.
    pub fn count(&self, call: Call) -> Count {
        let counter = &self.counters[call as usize];
        Count {
            calls: counter.calls.load(Relaxed),
            errors: counter.errors.load(Relaxed),
            nanoseconds: counter.nanoseconds.load(Relaxed),
        }
    }

    fn counted<T>(&self, call: Call, make: impl FnOnce() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let result = make();
        self.add_time(call, began);
        self.add_call(call, &result);
        result
    }

    fn add_call<T>(&self, call: Call, result: &Result<T>) {
        let counter = &self.counters[call as usize];
        add(&counter.calls, 1);
        if result.is_err() {
            add(&counter.errors, 1);
        }
    }

    fn add_time(&self, call: Call, began: Instant) {
        let took = began.elapsed().as_nanos() as u64;
        add(&self.counters[call as usize].nanoseconds, took);
    }

    /// Opens a directory by a name in another one: no symbolic link, no other mount.
    ///
    /// Returns `Errno::XDEV` where something is mounted on it.
    pub fn open_directory(&self, above: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
        if !self.without_openat2.load(Relaxed) {
            let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
            for tries_left in (0..TRIES).rev() {
                let opened = self.counted(Call::Openat2, || {
                    rustix::fs::openat2(above, name, DIRECTORY, Mode::empty(), resolve)
                });
                match opened {
                    // A rename or a mount came in between, anywhere on the system.
                    Err(Errno::AGAIN | Errno::INTR) if tries_left > 0 => continue,
                    // Before 5.6; EPERM or EACCES may come from a filter that does not know the call.
                    // Where the directory itself is refused, the plain call says so too.
                    Err(Errno::NOSYS | Errno::PERM | Errno::ACCESS) => break,
                    other => return other,
                }
            }
        }
        let opened = self.open_plainly(above, name)?;
        self.without_openat2.store(true, Relaxed);
        let mount = self.mount_of(opened.as_fd());
        match mount.and_then(|mount| Ok(mount == self.mount_of(above)?)) {
            Ok(true) => Ok(opened),
            other => {
                self.close(opened);
                Err(other.err().unwrap_or(Errno::XDEV))
            }
        }
    }

    /// Opens a directory on the way to a tree, to read it or only to have it (`PATH`).
    pub fn open_component(&self, above: impl AsFd, name: &CStr, access: OFlags) -> Result<OwnedFd> {
        let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.counted(Call::Openat, || {
            rustix::fs::openat(above, name, flags, Mode::empty())
        })
    }

    /// Opens the directory above one, as `..`; the caller compares what it is.
    pub fn open_parent(&self, below: BorrowedFd<'_>) -> Result<OwnedFd> {
        self.open_plainly(below, c"..")
    }

    fn open_plainly(&self, from: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
        self.counted(Call::Openat, || {
            rustix::fs::openat(from, name, DIRECTORY, Mode::empty())
        })
    }

    /// Opens a file to write to it, never through a symbolic link; only where it is a regular
    /// file does this have no effect of its own.
    pub fn open_file(&self, above: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        self.counted(Call::Openat, || {
            rustix::fs::openat(above, name, flags | OFlags::NOCTTY, Mode::empty())
        })
    }

    /// Opens whatever a name stands for only to have it (`PATH`): nothing else comes of it.
    pub fn open_path_fd(&self, above: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.counted(Call::Openat, || {
            rustix::fs::openat(above, name, flags, Mode::empty())
        })
    }

    /// The number of the mount a descriptor is on, by statx (5.8) or fdinfo in proc(5).
    fn mount_of(&self, descriptor: BorrowedFd<'_>) -> Result<u64> {
        use std::os::fd::AsRawFd;
        if let Ok(status) = self.statx_of(descriptor, StatxFlags::MNT_ID) {
            if status.stx_mask & StatxFlags::MNT_ID.bits() != 0 {
                return Ok(status.stx_mnt_id);
            }
        }
        let path = format!("/proc/self/fdinfo/{}", descriptor.as_raw_fd());
        // Whatever is wrong with proc must not look as if the directory were gone.
        let text =
            std::fs::read_to_string(path).map_err(|why| match Errno::from_io_error(&why) {
                Some(why @ (Errno::MFILE | Errno::NFILE)) => why,
                _ => Errno::NOSYS,
            })?;
        text.lines()
            .find_map(|line| line.strip_prefix("mnt_id:"))
            .and_then(|number| number.trim().parse().ok())
            .ok_or(Errno::NOSYS)
    }

    /// Which directory a descriptor stands for.
    pub fn identify(&self, descriptor: BorrowedFd<'_>) -> Result<DirIdentity> {
        self.identify_root(descriptor).map(|(known, _)| known)
    }

    /// Which directory a descriptor stands for, and whether it is the root of a mount; `false`
    /// also where the kernel does not report that (before 5.8, or without statx).
    pub fn identify_root(&self, descriptor: BorrowedFd<'_>) -> Result<(DirIdentity, bool)> {
        if !self.without_statx.load(Relaxed) {
            match self.statx_of(descriptor, StatxFlags::INO | StatxFlags::BTIME) {
                // Before 4.11, or a filter that does not know it, as with openat2.
                Err(Errno::NOSYS | Errno::PERM) => self.without_statx.store(true, Relaxed),
                other => {
                    return other.map(|status| {
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
        self.counted(Call::Fstat, || rustix::fs::fstat(descriptor))
    }

    /// The number of a descriptor's kind of file system (statfs(2)).
    pub fn kind_of_file_system(&self, descriptor: BorrowedFd<'_>) -> Result<u64> {
        let told = self.counted(Call::Fstatfs, || rustix::fs::fstatfs(descriptor))?;
        Ok(told.f_type as u64 & 0xffff_ffff)
    }

    /// What a name stands for now, itself.
    pub fn stat(&self, above: BorrowedFd<'_>, name: &CStr) -> Result<Stat> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        self.counted(Call::Newfstatat, || rustix::fs::statat(above, name, flags))
    }

    /// What a name stands for, itself; takes what the kernel knows without asking a server.
    pub fn statx(&self, above: BorrowedFd<'_>, name: &CStr, mask: StatxFlags) -> Result<Statx> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
        self.counted(Call::Statx, || rustix::fs::statx(above, name, flags, mask))
    }

    /// What a descriptor stands for.
    pub fn statx_of(&self, descriptor: BorrowedFd<'_>, mask: StatxFlags) -> Result<Statx> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        self.counted(Call::Statx, || {
            rustix::fs::statx(descriptor, c"", flags, mask)
        })
    }

    /// Removes a name that is not a directory's.
    pub fn unlink(&self, above: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        self.counted(Call::Unlinkat, || {
            rustix::fs::unlinkat(above, name, AtFlags::empty())
        })
    }

    /// Removes names one straight after the other.
    pub fn unlinks(&self) -> Unlinks<'_> {
        Unlinks::new(self)
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, above: BorrowedFd<'_>, name: &CStr) -> Result<()> {
        self.counted(Call::Unlinkat, || {
            rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR)
        })
    }

    /// Gives a descriptor back; the kernel does so whatever it answers.
    pub fn close(&self, descriptor: OwnedFd) {
        let number = descriptor.into_raw_fd();
        let _ = self.counted(Call::Close, || {
            crate::sys::close(number);
            Ok(())
        });
    }

    /// Makes a directory the calling thread's current one; see `sys::unshare_cwd`.
    pub fn fchdir(&self, directory: BorrowedFd<'_>) -> Result<()> {
        self.counted(Call::Fchdir, || rustix::process::fchdir(directory))
    }

    /// Makes the root the calling thread's current directory.
    pub fn chdir_root(&self) -> Result<()> {
        self.counted(Call::Chdir, || rustix::process::chdir(c"/"))
    }

    /// A second descriptor of the same open directory.
    pub fn duplicate(&self, descriptor: BorrowedFd<'_>) -> Result<OwnedFd> {
        self.counted(Call::Fcntl, || {
            rustix::io::fcntl_dupfd_cloexec(descriptor, 3)
        })
    }

    /// Goes on reading a directory behind an entry, or at its begin (0).
    pub fn seek(&self, directory: BorrowedFd<'_>, cookie: u64) -> Result<()> {
        self.counted(Call::Lseek, || {
            rustix::fs::seek(directory, SeekFrom::Start(cookie)).map(|_| ())
        })
    }

    /// Lets nobody else open a file without our knowing; see `sys::lease`.
    pub fn lease(&self, file: BorrowedFd<'_>) -> bool {
        let given = self.counted(Call::Fcntl, || crate::sys::lease(file));
        given.is_ok()
    }

    /// Tells whether the lease still holds.
    pub fn is_leased(&self, file: BorrowedFd<'_>) -> bool {
        let held = self.counted(Call::Fcntl, || crate::sys::is_leased(file));
        held.unwrap_or(false)
    }

    pub fn truncate(&self, file: BorrowedFd<'_>, length: u64) -> Result<()> {
        self.counted(Call::Ftruncate, || rustix::fs::ftruncate(file, length))
    }

    /// Reads the next names of a directory with one getdents64; `.` and `..` are left out.
    ///
    /// Uses no more of the buffer than the C library's readdir where the kernel takes no more.
    ///
    /// Returns the cookie behind the last of them, `None` at the end of the directory.
    pub fn read_names(
        &self,
        directory: BorrowedFd<'_>,
        buffer: &mut [MaybeUninit<u8>],
        mut take: impl FnMut(&CStr, FileType, u64),
    ) -> Result<Option<u64>> {
        let is_large = buffer.len() > READDIR_BYTES;
        if is_large && !self.without_large_reads.load(Relaxed) {
            match self.read_buffer(directory, buffer, &mut take) {
                // Nothing was read: EINVAL comes before any name.
                Err(Errno::INVAL) => self.without_large_reads.store(true, Relaxed),
                read => return read,
            }
        }
        let usual = buffer.len().min(READDIR_BYTES);
        self.read_buffer(directory, &mut buffer[..usual], &mut take)
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
            // An empty buffer means that the next step asks the kernel: once, here.
            let asks = reader.is_buffer_empty();
            if asks && cookie.is_some() {
                return Ok(cookie);
            }
            let entry = if asks {
                let mut answer = None;
                let count = self.counted(Call::Getdents64, || match reader.next() {
                    None => Ok(()),
                    Some(Ok(entry)) => {
                        answer = Some((entry.next_entry_cookie(), kept(&mut take, &entry)));
                        Ok(())
                    }
                    Some(Err(why)) => Err(why),
                });
                count?;
                answer.map(|(cookie, ())| cookie)
            } else {
                match reader.next() {
                    None => None,
                    Some(entry) => {
                        let entry = entry?;
                        kept(&mut take, &entry);
                        Some(entry.next_entry_cookie())
                    }
                }
            };
            match entry {
                None => return Ok(cookie),
                some => cookie = some,
            }
        }
    }
}

fn kept(take: &mut impl FnMut(&CStr, FileType, u64), entry: &rustix::fs::RawDirEntry<'_>) {
    let name = entry.file_name();
    if name != c"." && name != c".." {
        take(name, entry.file_type(), entry.ino());
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}
