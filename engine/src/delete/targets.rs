//! Opening targets: name by name from the root, or from where one stands, no symbolic link on the
//! way.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, CWD};
use rustix::io::{Errno, Result};

use super::arguments::Arguments;
use super::file_systems::FileSystem;
use super::shared_dir::{DirLocation, SharedDir, Target};
use super::work_queue::Task;
use crate::syscalls::Calls;

/// Why a target is not touched.
pub enum Refusal {
    Failed(Errno),
    /// It is not what was confirmed.
    Another,
    /// It is the root of a mount.
    MountRoot,
}

impl From<Errno> for Refusal {
    fn from(why: Errno) -> Self {
        Self::Failed(why)
    }
}

/// Returns the task of emptying one of the targets.
pub fn open(asked: &Arguments, number: usize, calls: &Calls) -> std::result::Result<Task, Refusal> {
    let path = asked.targets[number].as_bytes();
    let keeps_target = asked.keep_root || asked.filters.are_active() || path == b".";
    let mut held = None;
    let descriptor = if path == b"." {
        calls.open_on_the_way(CWD, c".", OFlags::RDONLY)?
    } else {
        let (parent_fd, name) = open_parent(path, calls)?;
        let descriptor = calls.open_on_the_way(&parent_fd, &name, OFlags::RDONLY)?;
        if keeps_target {
            calls.close(parent_fd);
        } else {
            held = Some((parent_fd, name));
        }
        descriptor
    };
    let file_system = FileSystem::of(descriptor.as_fd(), calls)?;
    let (identity, is_mount_root) = calls.identify_root(descriptor.as_fd())?;
    let identity = file_system.without_unstable_birth(identity);
    if asked
        .pins
        .get(number)
        .is_some_and(|pin| !identity.matches_pin(pin))
    {
        return Err(Refusal::Another);
    }
    if is_mount_root {
        return Err(Refusal::MountRoot);
    }
    let (parent_fd, name) = held.unzip();
    let target = Target {
        path: path.to_vec(),
        name: name.unwrap_or_default(),
        parent_fd: Mutex::new(parent_fd),
        file_system,
    };
    let directory: Arc<SharedDir> = SharedDir::new(DirLocation::Target(target), identity);
    Ok(Task::Tree(directory, descriptor))
}

fn open_parent(path: &[u8], calls: &Calls) -> Result<(OwnedFd, CString)> {
    let below = path.strip_prefix(b"/");
    let mut names: Vec<CString> = below
        .unwrap_or(path)
        .split(|&byte| byte == b'/')
        .map(|name| CString::new(name).map_err(|_| Errno::INVAL))
        .collect::<Result<_>>()?;
    let last = names.pop().ok_or(Errno::INVAL)?;
    let begin = if below.is_some() { c"/" } else { c"." };
    let mut parent_fd = calls.open_on_the_way(CWD, begin, OFlags::PATH)?;
    for name in &names {
        let above = parent_fd;
        parent_fd = calls.open_on_the_way(&above, name, OFlags::PATH)?;
        calls.close(above);
    }
    Ok((parent_fd, last))
}
