//! The process: C library functions that rustix does not wrap, and its descriptor table. Has all
//! unsafe code of the crate.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::io::{Errno, Result};

use crate::concurrency::Usage;

/// Returns whether a name matches a shell pattern as in `find -name`: fnmatch(3) without flags, in
/// the C locale, because the program never calls setlocale.
pub fn matches_glob(pattern: &CStr, name: &CStr) -> bool {
    // SAFETY: both pointers are of NUL-terminated strings that live to the end of the call.
    unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), 0) == 0 }
}

const KCMP_FS: libc::c_int = 3;

/// Unshares the current directory of the calling thread, which must not be the first thread.
///
/// Container runtimes forbid the call together with the creation of namespaces. An emulated kernel
/// may report success without effect, so kcmp(2) must confirm that the first thread's current
/// directory is a different one.
pub fn unshare_cwd() -> Result<()> {
    // SAFETY: unshare takes a number and touches no memory. The thread gets a copy of its current
    // directory, its root and its umask.
    check(unsafe { libc::unshare(libc::CLONE_FS) })?;
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

/// Takes a write lease (fcntl(2)). The kernel grants it only if the file has no other open
/// descriptor, and another open(2) breaks it.
pub fn lease(file: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: fcntl takes two numbers here and touches no memory.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
    check(result).map(|_| ())
}

/// Returns whether the lease is not broken.
pub fn is_leased(file: BorrowedFd<'_>) -> Result<bool> {
    // SAFETY: as above.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) };
    Ok(check(result)? == libc::F_WRLCK)
}

fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    Ok(result)
}

/// INR_OPEN_CUR in linux/fs.h.
const DEFAULT_LIMIT: u64 = 1024;

/// Raises the soft limit of descriptors to a useful number. Returns the limit; the default if a filter
/// refuses the call, which rustix assumes to succeed.
pub fn raise_descriptor_limit(useful: u64) -> u64 {
    let mut limits = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes only the structure, which is local.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits) } < 0 {
        return DEFAULT_LIMIT;
    }
    let current = limits.rlim_cur; // RLIM_INFINITY is the largest number
    limits.rlim_cur = limits.rlim_max.min(useful).max(current);
    // SAFETY: the kernel only reads the structure.
    let is_raised =
        limits.rlim_cur > current && unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) } == 0;
    match is_raised {
        true => limits.rlim_cur,
        false => current,
    }
}

/// Returns what all threads have used.
pub fn usage() -> Usage {
    // SAFETY: all fields are numbers, so the structure is valid whether the kernel fills it or not.
    let usage = unsafe {
        // zeroed, because a filter may refuse the call
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let duration = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    Usage {
        voluntary_switches: usage.ru_nvcsw as u64,
        blocks_read: usage.ru_inblock as u64,
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
    }
}

/// Ignores the signal of a broken lease, which would kill the process.
pub fn ignore_broken_leases() {
    // SAFETY: SIG_IGN installs no handler.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
}

/// Enlarges the descriptor table while the process has one thread. With several threads the kernel
/// waits for all processors at each growth (synchronize_rcu in fs/file.c, some 13 ms), which is longer
/// than the deletion of a thousand directories.
///
/// On failure the table grows later.
pub fn grow_descriptor_table(descriptors: u64) {
    if let Some(Ok(last)) = descriptors.checked_sub(1).map(i32::try_from) {
        drop(rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_size() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        line.unwrap().trim().parse().unwrap()
    }

    #[test]
    fn descriptor_table_is_large_enough_and_limits_are_checked() {
        let more = table_size() + 1;
        grow_descriptor_table(more);
        assert!(table_size() >= more);
        grow_descriptor_table(0);
        grow_descriptor_table(u64::MAX);
    }
}
