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
use super::shared_dir::{Directory, Place, Target};
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
    let keeps_it = asked.keep_root || asked.filters.are_active() || path == b".";
    let mut held = None;
    let descriptor = if path == b"." {
        calls.open_on_the_way(CWD, c".", OFlags::RDONLY)?
    } else {
        let (holder, name) = open_holder(path, calls)?;
        let descriptor = calls.open_on_the_way(&holder, &name, OFlags::RDONLY)?;
        if keeps_it {
            calls.close(holder);
        } else {
            held = Some((holder, name));
        }
        descriptor
    };
    let file_system = FileSystem::of(descriptor.as_fd(), calls)?;
    let (known, is_mount_root) = calls.identify_root(descriptor.as_fd())?;
    let known = file_system.without_unstable_birth(known);
    if asked
        .pins
        .get(number)
        .is_some_and(|pin| !known.matches_pin(pin))
    {
        return Err(Refusal::Another);
    }
    if is_mount_root {
        return Err(Refusal::MountRoot);
    }
    let (holder, name) = held.unzip();
    let target = Target {
        path: path.to_vec(),
        name: name.unwrap_or_default(),
        holder: Mutex::new(holder),
        file_system,
    };
    let directory: Arc<Directory> = Directory::new(Place::Target(target), known);
    Ok(Task::Tree(directory, descriptor))
}

fn open_holder(path: &[u8], calls: &Calls) -> Result<(OwnedFd, CString)> {
    let below = path.strip_prefix(b"/");
    let mut names: Vec<CString> = below
        .unwrap_or(path)
        .split(|&byte| byte == b'/')
        .map(|name| CString::new(name).map_err(|_| Errno::INVAL))
        .collect::<Result<_>>()?;
    let last = names.pop().ok_or(Errno::INVAL)?;
    let begin = if below.is_some() { c"/" } else { c"." };
    let mut holder = calls.open_on_the_way(CWD, begin, OFlags::PATH)?;
    for name in &names {
        let above = holder;
        holder = calls.open_on_the_way(&above, name, OFlags::PATH)?;
        calls.close(above);
    }
    Ok((holder, last))
}
