//! Opens targets component by component from `/` or the working directory, without symbolic links.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, CWD};
use rustix::io::{Errno, Result};

use super::arguments::Arguments;
use super::shared_dir::{SharedDir, Target};
use super::{EXIT_FAILURE, EXIT_REFUSED};
use crate::file_systems::FileSystem;
use crate::syscalls::Syscalls;

/// A component of a path, as a reference.
const PATH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// The reason why a target is not deleted.
pub enum TargetError {
    Failed(Errno),
    /// Nothing may be deleted: what the target is, and the exit code.
    Refused(&'static str, u8),
}

impl From<Errno> for TargetError {
    fn from(error: Errno) -> Self {
        Self::Failed(error)
    }
}

/// Opens a target and checks its pin.
pub fn open(
    arguments: &Arguments,
    number: usize,
    calls: &Syscalls,
) -> std::result::Result<(Arc<SharedDir>, OwnedFd), TargetError> {
    let path = arguments.targets[number].as_bytes();
    // The machine that finishes its share last removes the target, after this process.
    let filters = &arguments.filters;
    let keeps_target =
        arguments.keep_root || filters.are_active() || filters.share.is_some() || path == b".";
    let mut parent = None;
    let descriptor = if path == b"." {
        calls.openat(CWD, c".", OFlags::DIRECTORY)?
    } else {
        let (parent_fd, name) = open_parent(path, calls)?;
        let descriptor = calls.openat(&parent_fd, &name, OFlags::DIRECTORY)?;
        if keeps_target {
            calls.close(parent_fd);
        } else {
            parent = Some((parent_fd, name));
        }
        descriptor
    };
    let file_system = FileSystem::of(descriptor.as_fd(), calls)?;
    let (identity, is_mount_root) = file_system.identify(descriptor.as_fd(), calls)?;
    let pin = arguments.pins.get(number);
    if pin.is_some_and(|pin| !identity.matches_pin(pin)) {
        let reason = "is not the directory that was confirmed";
        return Err(TargetError::Refused(reason, EXIT_FAILURE));
    }
    if is_mount_root && !arguments.own_mounts {
        let reason = "is the root of a mount; unmount it first";
        return Err(TargetError::Refused(reason, EXIT_REFUSED));
    }
    let (parent_fd, name) = parent.unzip();
    let target = Target {
        path: path.to_vec(),
        name: name.unwrap_or_default(),
        parent_fd: Mutex::new(parent_fd),
        file_system,
    };
    let directory = SharedDir::new(Arc::new(target), None, identity);
    Ok((directory, descriptor))
}

fn open_parent(path: &[u8], calls: &Syscalls) -> Result<(OwnedFd, CString)> {
    let relative = path.strip_prefix(b"/");
    let mut names: Vec<CString> = relative
        .unwrap_or(path)
        .split(|&byte| byte == b'/')
        .map(|name| CString::new(name).map_err(|_| Errno::INVAL))
        .collect::<Result<_>>()?;
    let last = names.pop().ok_or(Errno::INVAL)?;
    let start = if relative.is_some() { c"/" } else { c"." };
    let mut parent_fd = calls.openat(CWD, start, PATH)?;
    for name in &names {
        let grandparent_fd = parent_fd;
        parent_fd = calls.openat(&grandparent_fd, name, PATH)?;
        calls.close(grandparent_fd);
    }
    Ok((parent_fd, last))
}
