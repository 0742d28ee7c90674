//! An unpacked tree: a private directory that is locked as long as a process uses it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, open, FlockOperation, Mode, OFlags};

/// Begins the names of all trees.
pub const PREFIX: &str = "tui-fs-";

/// Opens a tree without following a symbolic link. The descriptor is not inherited.
pub fn open_tree(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

/// Waits until nothing uses a tree, and removes it; returns at once if another process waits.
pub fn remove_when_unused(path: &Path) -> io::Result<()> {
    let cleanup = File::create(path.join(".cleanup"))?;
    if flock(&cleanup, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    let tree = open_tree(path)?;
    while let Err(error) = flock(&tree, FlockOperation::LockExclusive) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    fs::remove_dir_all(path)
}

/// Creates an empty tree of a build in `place`, and locks it.
pub fn create(place: &Path, build: &str) -> io::Result<(PathBuf, File)> {
    loop {
        let path = place.join(format!("{PREFIX}{build}-{:08x}", random()?));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            result => result?,
        }
        let tree = open_tree(&path)?;
        flock(&tree, FlockOperation::LockShared)?;
        // Until it was locked, another start could take it for a leftover and remove it.
        if tree.metadata()?.nlink() > 0 {
            return Ok((path, tree));
        }
    }
}

fn random() -> io::Result<u32> {
    let mut bytes = [0; 4];
    // SAFETY: the buffer has as many bytes as are requested.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if count == 4 {
        Ok(u32::from_ne_bytes(bytes))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Removes the trees that nothing uses; returns a complete one of this build that is in use, locked.
///
/// A tree is left over if its processes and its cleanup were killed.
pub fn find_in_use(place: &Path, build: &str, complete: &str) -> Option<(PathBuf, File)> {
    let mut found = None;
    for entry in fs::read_dir(place).ok()?.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        let Ok(tree) = open_tree(&path) else { continue };
        let Ok(status) = tree.metadata() else {
            continue;
        };
        if status.uid() != rustix::process::geteuid().as_raw() || status.mode() & 0o077 != 0 {
            continue;
        }
        if flock(&tree, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(&path); // what cannot be removed stays for the next start
        } else if found.is_none()
            && rest.starts_with(build)
            && flock(&tree, FlockOperation::NonBlockingLockShared).is_ok()
            && path.join(complete).exists()
        {
            found = Some((path, tree));
        }
    }
    found
}
