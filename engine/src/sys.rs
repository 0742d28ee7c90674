//! The few functions of the C library that rustix has no safe form of: all unsafe code there is.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use rustix::io::{Errno, Result};

/// Tells whether a name matches a shell pattern exactly as `find -name` does in the C locale:
/// fnmatch(3) without flags. The program never calls setlocale, so C it is.
pub fn matches_glob(pattern: &CStr, name: &CStr) -> bool {
    // SAFETY: both pointers are of NUL-terminated strings that live to the end of the call.
    unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 }
}

/// Closes a descriptor that nobody owns any more.
pub fn close(descriptor: RawFd) {
    // SAFETY: the number comes from an `OwnedFd` that was just given up, so nobody else uses it.
    unsafe { libc::close(descriptor) };
}

const KCMP_FS: libc::c_int = 3;

/// Gives the calling thread, which is not the first of the process, a current directory of its own,
/// which no other thread sees or changes.
///
/// Container runtimes forbid the call to those who are not to make namespaces, too. What only says
/// that it does (there are emulations of the kernel) is not believed: the first thread's current
/// directory must be another one (kcmp(2)).
pub fn unshare_cwd() -> Result<()> {
    // SAFETY: unshare takes a number and touches no memory; the thread goes on with a copy of
    // what it has shared: its current directory, its root and its umask.
    answered(unsafe { libc::unshare(libc::CLONE_FS) })?;
    // SAFETY: all of these take and return numbers.
    let order = unsafe {
        let (process, thread) = (libc::getpid(), libc::gettid());
        libc::syscall(libc::SYS_kcmp, process, thread, KCMP_FS, 0, 0)
    };
    if order > 0 {
        return Ok(());
    }
    Err(Errno::NOSYS)
}

/// Lets nobody else have this file open without our knowing: a write lease is given only while
/// nobody else has, and whoever opens it breaks it (fcntl(2)).
pub fn lease(file: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: fcntl takes two numbers here and touches no memory of ours.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
    answered(answer).map(|_| ())
}

/// Tells whether the lease still holds.
pub fn is_leased(file: BorrowedFd<'_>) -> Result<bool> {
    // SAFETY: as above.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) };
    Ok(answered(answer)? == libc::F_WRLCK)
}

fn answered(answer: libc::c_int) -> Result<libc::c_int> {
    if answer < 0 {
        let why = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&why).unwrap_or(Errno::IO));
    }
    Ok(answer)
}

/// Returns how many descriptors this process may have now, and how many it may allow itself.
///
/// rustix takes it for granted that the call succeeds; a filter may refuse it.
pub fn descriptor_limits() -> Result<(u64, u64)> {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structure is one's own, and the kernel writes no more than it.
    answered(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) })?;
    Ok((limits.rlim_cur, limits.rlim_max)) // RLIM_INFINITY is the largest number
}

/// Returns how often all threads have slept, and how many blocks of 512 bytes they had to read.
pub fn sched_counts() -> (u64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills the whole structure, and does not fail for one's own process.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    (usage.ru_nvcsw as u64, usage.ru_inblock as u64)
}

/// Ignores the signal that tells of a broken lease; it would end the process.
pub fn ignore_broken_leases() {
    // SAFETY: SIG_IGN is no function of ours that could be interrupted or interrupt.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
}
