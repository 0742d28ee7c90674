//! `rmdir`, for a machine that has none; tui-fs uses the machine's own if there is one.

use std::ffi::CStr;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments == ["--version"] {
        println!("rmdir of tui-fs {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    if arguments.first().is_some_and(|first| first == "--") {
        arguments.remove(0);
    }
    let mut code = ExitCode::SUCCESS;
    for name in arguments {
        if let Err(error) = fs::remove_dir(&name) {
            code = ExitCode::FAILURE;
            let mut line = b"rmdir: failed to remove ".to_vec();
            line.extend(quoted(name.into_vec()));
            line.extend([b": ", reason(&error).as_bytes(), b"\n"].concat());
            let _ = io::stderr().write_all(&line); // the exit code reports the failure as well
        }
    }
    code
}

/// Quotes a name as coreutils does in the C locale: `'a'$'\012''b'`.
fn quoted(name: Vec<u8>) -> Vec<u8> {
    let mut text = b"'".to_vec();
    for byte in name {
        match byte {
            b' '..=b'~' if byte != b'\'' => text.push(byte),
            _ => text.extend(format!("'$'\\{byte:03o}''").bytes()),
        }
    }
    text.push(b'\'');
    text
}

fn reason(error: &io::Error) -> String {
    // SAFETY: strerror returns a string that ends with a zero, and this process has one thread.
    let text = unsafe { CStr::from_ptr(libc::strerror(error.raw_os_error().unwrap_or(0))) };
    text.to_string_lossy().into_owned()
}
