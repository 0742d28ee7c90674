//! What is told: failures on standard error, counts and answers on standard output.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::io::Errno;

use super::remover::Tally;
use crate::quoting::{quoted, reason};
use crate::syscalls::{Count, CALLS};

/// Tells each entry that could not be removed, and counts them.
#[derive(Default)]
pub struct Failures {
    number: AtomicU64,
}

impl Failures {
    pub fn tell(&self, operation: &str, path: &[u8], why: Errno) {
        self.number.fetch_add(1, Relaxed);
        say(&format!(
            "cannot {operation} {}: {}",
            quoted(path),
            reason(why)
        ));
    }

    /// Tells something that is not about one entry, and counts it as a failure.
    pub fn say(&self, sentence: &str) {
        self.number.fetch_add(1, Relaxed);
        say(sentence);
    }

    pub fn number(&self) -> u64 {
        self.number.load(Relaxed)
    }
}

/// Writes a line to standard error.
pub fn say(sentence: &str) {
    // Nobody is left who could be told that nothing can be told.
    let _ = writeln!(std::io::stderr().lock(), "tui-fs-engine: {sentence}");
}

/// Returns how many entries all workers have removed.
pub fn removed(tallies: &[Tally]) -> u64 {
    let each = tallies.iter();
    each.map(|tally| tally.files.load(Relaxed) + tally.directories.load(Relaxed))
        .sum()
}

/// Returns the totals of all workers as a line.
pub fn counts(tallies: &[Tally], threads: usize, splits: bool) -> String {
    let sum = |one: fn(&Tally) -> &AtomicU64| -> u64 {
        tallies.iter().map(|tally| one(tally).load(Relaxed)).sum()
    };
    let directories = sum(|tally| &tally.directories);
    let removed = sum(|tally| &tally.files) + directories;
    let calls: Vec<String> = CALLS
        .iter()
        .map(|&(call, name)| {
            let total = tallies.iter().map(|tally| tally.calls.count(call)).fold(
                Count::default(),
                |a, b| Count {
                    calls: a.calls + b.calls,
                    errors: a.errors + b.errors,
                    nanoseconds: a.nanoseconds + b.nanoseconds,
                },
            );
            (name, total)
        })
        .filter(|(_, total)| total.calls > 0)
        .map(|(name, total)| {
            format!(
                "\"{name}\":[{},{},{}]",
                total.calls, total.errors, total.nanoseconds
            )
        })
        .collect();
    format!(
        "{{\"type\":\"counts\",\"removed\":{removed},\"directories\":{directories},\
         \"threads\":{threads},\"split\":{splits},\"calls\":{{{}}}}}",
        calls.join(",")
    )
}

/// Writes a line to standard output at once.
pub fn tell(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
