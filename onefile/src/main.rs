//! tui-fs in one file: unpacks itself, with a Python of its own, into memory and runs there.
//!
//! The process that unpacks becomes the Python process, so that signals, job control and the exit
//! status are those of tui-fs itself. All its processes have a shared lock on the unpacked tree; a
//! detached process, `tui-fs-cleanup`, waits for the end of the last one and removes the tree.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::fs::{statfs, statvfs, StatVfsMountFlags};

/// A tar archive of the tree, compressed by zstd.
static PAYLOAD: &[u8] = include_bytes!(env!("TUI_FS_PAYLOAD"));
/// Identifies the payload; trees with the same name have the same contents.
const BUILD: &str = env!("TUI_FS_BUILD");

/// Replaces the memory directories, on any file system.
const DIRECTORY_VARIABLE: &str = "TUI_FS_UNPACK_DIR";
/// The dynamic linker's path in the programs, as long as the longest real one; see build-onefile.
const PLACEHOLDER: &[u8] = b"/tui-fs-dynamic-linker/";
const LINKER: &str = "lib/ld.so";
/// Exists in a completely unpacked tree.
const COMPLETE: &str = ".complete";

/// Where tools are searched without a PATH.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;
/// The lowest number of the inherited lock, above the standard streams.
const MIN_LOCK_FD: i32 = 20;
const INSECURE: &str = "other users can replace files there";
/// The exit code of tui-fs for a missing tool or privilege.
const EXIT_MISSING: u8 = 4;

fn main() -> ExitCode {
    // SAFETY: sets a default action. If SIGCHLD is ignored, no process can be waited for.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let (mut problems, mut mountable) = (Vec::new(), Vec::new());
    for place in places() {
        let problem = match examine(&place) {
            Ok(None) => match start(&place, false) {
                Ok(never) => match never {},
                Err(error) => error.to_string(),
            },
            Ok(Some(problem)) => problem.to_string(),
            Err(error) => error.to_string(),
        };
        problems.push(format!("  {}: {problem}", place.display()));
        if problem != INSECURE && place.is_dir() {
            mountable.push(place);
        }
    }
    if std::env::var_os(DIRECTORY_VARIABLE).is_none() && rustix::process::geteuid().is_root() {
        mountable.push("/dev".into());
        for place in mountable {
            match start(&place, true) {
                Ok(never) => match never {},
                Err(error) => problems.push(format!("  a tmpfs in {}: {error}", place.display())),
            }
        }
    }
    eprintln!(
        "tui-fs: No directory in memory can hold the programs of tui-fs (about {} MiB):\n{}\n\
         Free space in one of them, or permit programs there (mount -o remount,exec DIRECTORY), or \
         name another directory: {DIRECTORY_VARIABLE}=DIRECTORY tui-fs",
        env!("TUI_FS_UNPACKED_MIB"),
        problems.join("\n"),
    );
    ExitCode::from(EXIT_MISSING)
}

/// Returns the directories to try, each once.
fn places() -> Vec<PathBuf> {
    if let Some(named) = std::env::var_os(DIRECTORY_VARIABLE) {
        return vec![named.into()];
    }
    let uid = rustix::process::geteuid().as_raw();
    let mut places: Vec<PathBuf> = vec!["/dev/shm".into(), "/run".into()];
    places.push(format!("/run/user/{uid}").into());
    if uid != 0 {
        // RemoveIPC of systemd-logind empties /dev/shm when an ordinary user logs out.
        places.insert(0, "/tmp".into());
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for mount in mounts.lines() {
        let mut fields = mount.split(' ').skip(1);
        if let (Some(path), Some("tmpfs" | "ramfs")) = (fields.next(), fields.next()) {
            // The kernel's own directories are not for files of programs.
            if !["/dev", "/sys", "/proc"]
                .iter()
                .any(|own| Path::new(path).starts_with(own))
            {
                places.push(path.into());
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    places.retain(|place| seen.insert(place.clone()));
    places
}

/// Returns why programs of this user cannot be run from a directory, None if they can.
fn examine(place: &Path) -> io::Result<Option<&'static str>> {
    let status = fs::metadata(place)?;
    let uid = rustix::process::geteuid().as_raw();
    let kind = statfs(place)?.f_type as u64;
    let is_memory = kind == TMPFS_MAGIC || kind == RAMFS_MAGIC;
    let is_foreign = status.uid() != uid && status.uid() != 0;
    let is_sticky = status.mode() & libc::S_ISVTX != 0;
    let flags = statvfs(place)?.f_flag;
    Ok(
        if !is_memory && std::env::var_os(DIRECTORY_VARIABLE).is_none() {
            Some("not in memory")
        } else if flags.contains(StatVfsMountFlags::RDONLY) {
            Some("mounted read-only")
        } else if flags.contains(StatVfsMountFlags::NOEXEC) {
            Some("mounted noexec")
        } else if is_foreign || (status.mode() & 0o022 != 0 && !is_sticky) {
            Some(INSECURE)
        } else {
            None
        },
    )
}

enum Never {}

/// Becomes the Python process of a tree in `place`; unpacks it first if none is in use there.
///
/// `is_mounted`: unpacks into a tmpfs of its own.
fn start(place: &Path, is_mounted: bool) -> io::Result<Never> {
    let place = fs::canonicalize(place)?;
    let (path, lock) = match tui_fs_onefile::find_in_use(&place, BUILD, COMPLETE) {
        Some((path, lock)) => {
            start_cleanup(&path)?; // ends at once, unless the one of the first start was killed
            (path, lock)
        }
        None => {
            let (path, lock) = tui_fs_onefile::create(&place, BUILD, is_mounted)?;
            let unpacked = unpack(&path).and_then(|()| start_cleanup(&path));
            if let Err(error) = unpacked {
                let _ = tui_fs_onefile::remove(&path); // the first error says more
                return Err(error);
            }
            (path, lock)
        }
    };
    inherit(&lock)?;
    let mut python = Command::new(path.join("bin/python3"));
    for (name, _) in std::env::vars_os() {
        if name.as_bytes().starts_with(b"PYTHON") {
            python.env_remove(name); // it is meant for another Python
        }
    }
    python
        .env("PYTHONNOUSERSITE", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let mut search = std::env::var_os("PATH").unwrap_or(DEFAULT_PATH.into());
    search.push(":");
    search.push(path.join("bin"));
    python.env("PATH", search);
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    Err(python
        .args(["-I", "-m", "tui_fs.cli"])
        .args(arguments)
        .exec())
}

fn unpack(path: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(zstd::Decoder::new(PAYLOAD)?);
    let linker = path.join(LINKER);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let name = entry.path()?.into_owned();
        let target = path.join(&name);
        if entry.header().entry_type().is_dir() {
            fs::create_dir_all(&target)?;
            continue;
        }
        let mut contents = Vec::with_capacity(entry.size() as usize);
        entry.read_to_end(&mut contents)?;
        if name.starts_with("bin") {
            set_linker(&mut contents, linker.as_os_str().as_bytes())?;
        }
        fs::write(&target, contents)?;
        if entry.header().mode()? & 0o100 != 0 {
            fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        }
    }
    fs::write(path.join(COMPLETE), "")
}

/// Writes the path of the dynamic linker into a program that has the placeholder.
fn set_linker(program: &mut [u8], linker: &[u8]) -> io::Result<()> {
    let Some(start) = program
        .windows(PLACEHOLDER.len())
        .position(|part| part == PLACEHOLDER)
    else {
        return Ok(());
    };
    let length = program[start..]
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(0);
    if linker.len() > length {
        return Err(io::Error::other("the path of the directory is too long"));
    }
    program[start..start + length].fill(0);
    program[start..start + linker.len()].copy_from_slice(linker);
    Ok(())
}

/// Starts the process that removes the tree after its last use; it detaches itself.
fn start_cleanup(path: &Path) -> io::Result<()> {
    let mut command = Command::new(path.join("bin/tui-fs-cleanup"));
    command.arg(path).current_dir("/");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.status()?.success() {
        true => Ok(()),
        false => Err(io::Error::other(
            "the process that cleans up cannot be started",
        )),
    }
}

/// Duplicates the lock to a descriptor that the next program inherits.
fn inherit(lock: &File) -> io::Result<()> {
    // SAFETY: duplicates an open descriptor; the copy is left to the next program.
    let copy = unsafe {
        match libc::fcntl(lock.as_raw_fd(), libc::F_DUPFD, MIN_LOCK_FD) {
            -1 => libc::fcntl(lock.as_raw_fd(), libc::F_DUPFD, 3), // few descriptors are permitted
            copy => copy,
        }
    };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
