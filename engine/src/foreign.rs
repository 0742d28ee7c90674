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

/// Tells whether nobody else has this file open: only then is a write lease given (fcntl(2)).
pub fn is_open_nowhere_else(file: BorrowedFd<'_>) -> bool {
    // SAFETY: fcntl takes two numbers here and touches no memory of ours.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) == 0 }
}
