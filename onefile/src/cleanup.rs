//! Removes the tree named by the only argument when nothing uses it any more.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        return ExitCode::FAILURE;
    };
    // SAFETY: this process has one thread, and no object has the descriptors that are closed.
    unsafe {
        match libc::fork() {
            -1 => return ExitCode::FAILURE,
            0 => libc::setsid(),
            _ => return ExitCode::SUCCESS,
        };
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // A descriptor that was inherited could keep a pipe open or a file system busy.
        if libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) != 0 {
            // before kernel 5.9
            (3..libc::sysconf(libc::_SC_OPEN_MAX).min(65_536)).for_each(|fd| {
                libc::close(fd as i32);
            });
        }
    }
    match tui_fs_onefile::remove_when_unused(Path::new(&path)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE, // the next start removes it
    }
}
