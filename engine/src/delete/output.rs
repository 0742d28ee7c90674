//! Failures on standard error; counts and answers on standard output.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::io::Errno;

use super::remover::Tally;
use crate::quoting::{quoted, reason};
use crate::syscalls::{class_limit_ns, Syscall, ALL_CALLS, TIME_CLASSES};

/// Reports failures and counts them.
#[derive(Default)]
pub struct Failures {
    count: AtomicU64,
}

impl Failures {
    pub fn report(&self, operation: &str, path: &[u8], error: Errno) {
        self.count.fetch_add(1, Relaxed);
        let (path, reason) = (quoted(path), reason(error));
        warn(&format!("cannot {operation} {path}: {reason}"));
    }

    /// Reports a failure that is not about one entry.
    pub fn report_message(&self, message: &str) {
        self.count.fetch_add(1, Relaxed);
        warn(message);
    }

    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}

/// Writes a line to standard error.
pub fn warn(message: &str) {
    // If standard error is closed, there is nowhere to report that.
    let _ = writeln!(std::io::stderr().lock(), "tui-fs-engine: {message}");
}

/// Returns the number of entries that all workers have removed.
pub fn total_removed(tallies: &[Tally]) -> u64 {
    let counts = (tallies.iter()).map(|tally| tally.calls.count(Syscall::Unlinkat));
    counts.map(|count| count.calls - count.errors).sum()
}

/// Returns the totals of all workers as a line of JSON; see docs/record-format.md.
pub fn format_counts(tallies: &[Tally], threads: usize) -> String {
    let directories = tallies.iter().map(|tally| tally.directories.load(Relaxed));
    let directories: u64 = directories.sum();
    // Read later, and each directory is counted there first; a processor may reorder that.
    let removed = total_removed(tallies).max(directories);
    let mut calls = Vec::new();
    for (call, name) in ALL_CALLS {
        let counts = || tallies.iter().map(|tally| tally.calls.count(*call));
        let made: u64 = counts().map(|count| count.calls).sum();
        let errors: u64 = counts().map(|count| count.errors).sum();
        let nanoseconds: u64 = counts().map(|count| count.nanoseconds).sum();
        if made > 0 {
            calls.push(format!("\"{name}\":[{made},{errors},{nanoseconds}]"));
        }
    }
    let mut times = [0; TIME_CLASSES];
    for tally in tallies {
        tally.calls.add_removal_times(&mut times);
    }
    let times = times.iter().enumerate().filter(|(_, number)| **number > 0);
    let times = times.map(|(class, number)| format!("[{},{number}]", class_limit_ns(class)));
    format!(
        "{{\"type\":\"counts\",\"removed\":{removed},\"directories\":{directories},\
         \"threads\":{threads},\"calls\":{{{}}},\"removal_ns\":[{}]}}",
        calls.join(","),
        times.collect::<Vec<_>>().join(",")
    )
}

/// Writes a line to standard output and flushes it.
pub fn emit(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
