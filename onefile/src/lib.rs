//! An unpacked tree: a private directory that is locked as long as a process uses it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, open, FlockOperation, Mode, OFlags};
use rustix::mount::{mount, unmount, MountFlags, UnmountFlags};

/// Begins the names of all trees; the build and a random number follow.
const PREFIX: &str = "tui-fs-";
const BUILD_DIGITS: usize = 12;
const RANDOM_DIGITS: usize = 8;
/// Exists in every tree, and is the first file in it.
const MARKER: &str = ".tui-fs-programs";
/// Locked by the process that will remove the tree.
const CLEANUP: &str = ".tui-fs-cleanup";

fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(open(path, flags, Mode::empty())?))
}

/// Returns the build of a tree by its name, None if it is the name of something else.
fn build_of(path: &Path) -> Option<&str> {
    let (build, random) = path
        .file_name()?
        .to_str()?
        .strip_prefix(PREFIX)?
        .split_once('-')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_tree = build.len() == BUILD_DIGITS && random.len() == RANDOM_DIGITS;
    (is_tree && is_hex(build) && is_hex(random)).then_some(build)
}

/// Opens a tree that this user has unpacked. Whatever else has such a name must never be removed.
fn open_tree(path: &Path) -> Option<File> {
    build_of(path)?;
    let tree = open_directory(path).ok()?;
    let status = tree.metadata().ok()?;
    let is_own = status.uid() == rustix::process::geteuid().as_raw();
    let is_private = status.mode() & 0o7777 == 0o700;
    (is_own && is_private && path.join(MARKER).exists()).then_some(tree)
}

/// Waits until nothing uses a tree, and removes it; returns at once if another process waits.
pub fn remove_when_unused(path: &Path) -> io::Result<()> {
    let Some(tree) = open_tree(path) else {
        return Err(io::Error::other("not unpacked by tui-fs"));
    };
    let cleanup = File::create(path.join(CLEANUP))?;
    if flock(&cleanup, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    while let Err(error) = flock(&tree, FlockOperation::LockExclusive) {
        if error != rustix::io::Errno::INTR {
            return Err(error.into());
        }
    }
    remove(path)
}

/// Removes a tree; one that is mounted is unmounted.
pub fn remove(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Ok(()) => fs::remove_dir(path),
        Err(_) => fs::remove_dir_all(path), // it is not mounted
    }
}

/// Creates an empty tree of a build in `place`, and locks it.
///
/// With `is_mounted` the tree is a tmpfs of its own, which permits programs.
pub fn create(place: &Path, build: &str, is_mounted: bool) -> io::Result<(PathBuf, File)> {
    loop {
        let path = place.join(format!("{PREFIX}{build}-{:08x}", random()?));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            result => result?,
        }
        if is_mounted {
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            if let Err(error) = mount("tui-fs", &path, "tmpfs", flags, Some(c"mode=0700")) {
                let _ = fs::remove_dir(&path); // the first error says more
                return Err(error.into());
            }
        }
        let tree = open_directory(&path)?;
        flock(&tree, FlockOperation::LockShared)?;
        File::create(path.join(MARKER))?; // only now can another start take it for a leftover
        return Ok((path, tree));
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
        let path = entry.path();
        let Some(tree) = open_tree(&path) else {
            continue;
        };
        if flock(&tree, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = remove(&path); // what cannot be removed stays for the next start
        } else if found.is_none()
            && build_of(&path) == Some(build)
            && flock(&tree, FlockOperation::NonBlockingLockShared).is_ok()
            && path.join(complete).exists()
        {
            found = Some((path, tree));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn place() -> PathBuf {
        let place = std::env::temp_dir().join(format!("tui-fs-test-{:08x}", random().unwrap()));
        fs::create_dir(&place).unwrap();
        place
    }

    const BUILD: &str = "0123456789ab";

    #[test]
    fn a_tree_that_nothing_uses_is_removed_and_one_in_use_is_found() {
        let place = place();
        let (unused, lock) = create(&place, BUILD, false).unwrap();
        drop(lock);
        let (used, _lock) = create(&place, BUILD, false).unwrap();
        assert!(find_in_use(&place, BUILD, "complete").is_none());
        assert!(!unused.exists());
        File::create(used.join("complete")).unwrap();
        assert!(find_in_use(&place, "ba9876543210", "complete").is_none());
        assert_eq!(find_in_use(&place, BUILD, "complete").unwrap().0, used);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn nothing_else_is_ever_removed() {
        let place = place();
        let (tree, lock) = create(&place, BUILD, false).unwrap();
        drop(lock);
        let others = [
            "tui-fs-0123456789ab-0123456",
            "tui-fs-jobs",
            "tui-fs-0123456789ax-01234567",
        ];
        let paths: Vec<PathBuf> = others.iter().map(|name| place.join(name)).collect();
        for path in &paths {
            fs::DirBuilder::new().mode(0o700).create(path).unwrap();
            File::create(path.join(MARKER)).unwrap();
        }
        let shared = place.join("tui-fs-0123456789ab-76543210");
        fs::rename(&tree, &shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
        let unmarked = place.join("tui-fs-0123456789ab-01234567");
        fs::DirBuilder::new().mode(0o700).create(&unmarked).unwrap();
        let link = place.join("tui-fs-0123456789ab-11111111");
        std::os::unix::fs::symlink(&paths[0], &link).unwrap();
        find_in_use(&place, BUILD, "complete");
        for path in paths.iter().chain([&shared, &unmarked, &link]) {
            assert!(remove_when_unused(path).is_err());
            assert!(path.exists(), "{path:?}");
        }
        fs::remove_dir_all(place).unwrap();
    }
}
