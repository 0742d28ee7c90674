//! The few functions of the C library that rustix has no safe form of: all unsafe code there is.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

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

/// Lets nobody else have this file open without our knowing: a write lease is given only while
/// nobody else has, and whoever opens it breaks it (fcntl(2)). Returns whether it was given.
pub fn lease(file: BorrowedFd<'_>) -> bool {
    // SAFETY: fcntl takes two numbers here and touches no memory of ours.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0 }
}

/// Tells whether the lease still holds.
pub fn is_leased(file: BorrowedFd<'_>) -> bool {
    // SAFETY: as above.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLEASE) == libc::F_WRLCK }
}

/// Ignores the signal that tells of a broken lease; it would end the process.
pub fn ignore_broken_leases() {
    // SAFETY: SIG_IGN is no function of ours that could be interrupted or interrupt.
    unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
}
