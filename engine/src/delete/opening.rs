//! Opening targets: name by name from the root, or from where one stands, no symbolic link on the
//! way.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};

use super::arguments::Arguments;
use super::crew::Task;
use super::directory::{Directory, Place, Target};
use crate::calls::Identity;

const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

/// Why a target is not touched.
pub enum Refusal {
    Failed(Errno),
    /// It is not what was confirmed.
    Another,
}

impl From<Errno> for Refusal {
    fn from(why: Errno) -> Self {
        Self::Failed(why)
    }
}

/// Returns the task of emptying one of the targets.
pub fn open(asked: &Arguments, number: usize) -> std::result::Result<Task, Refusal> {
    let path = asked.targets[number].as_bytes();
    let keeps_it = asked.keep_root || asked.filters.are_active() || path == b".";
    let (holder, descriptor) = if path == b"." {
        (None, open_in(rustix::fs::CWD, c".", OFlags::RDONLY)?)
    } else {
        let (holder, name) = open_holder(path)?;
        let descriptor = open_in(holder.as_fd(), &name, OFlags::RDONLY)?;
        ((!keeps_it).then_some((holder, name)), descriptor)
    };
    let identity = Identity::of(&rustix::fs::fstat(&descriptor)?);
    if asked.pins.get(number).is_some_and(|pin| *pin != identity) {
        return Err(Refusal::Another);
    }
    let kind = rustix::fs::fstatfs(&descriptor)?.f_type as u64 & 0xffff_ffff;
    let target = Target {
        path: path.to_vec(),
        holder,
        device: identity.device,
        is_in_memory: kind == TMPFS_MAGIC || kind == RAMFS_MAGIC,
    };
    let directory: Arc<Directory> = Directory::new(Place::Target(target), identity.inode);
    Ok(Task::Whole(directory, descriptor))
}

fn open_holder(path: &[u8]) -> Result<(OwnedFd, CString)> {
    let below = path.strip_prefix(b"/");
    let mut names: Vec<CString> = below
        .unwrap_or(path)
        .split(|&byte| byte == b'/')
        .map(|name| CString::new(name).map_err(|_| Errno::INVAL))
        .collect::<Result<_>>()?;
    let last = names.pop().ok_or(Errno::INVAL)?;
    let begin = if below.is_some() { c"/" } else { c"." };
    let mut holder = open_in(rustix::fs::CWD, begin, OFlags::PATH)?;
    for name in &names {
        holder = open_in(holder.as_fd(), name, OFlags::PATH)?;
    }
    Ok((holder, last))
}

fn open_in(above: impl AsFd, name: &CStr, access: OFlags) -> Result<OwnedFd> {
    let flags = access | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(above, name, flags, Mode::empty())
}
