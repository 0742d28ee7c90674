//! `tui-fs-engine capabilities`: the version, the limits and the file systems, for tui-fs.

use std::process::ExitCode;

use lexopt::prelude::*;

use crate::concurrency;
use crate::delete;
use crate::file_systems::KNOWN;
use crate::survey;

/// Prints one JSON object. `--json` is the only format.
pub fn main(parser: &mut lexopt::Parser) -> Result<ExitCode, lexopt::Error> {
    while let Some(argument) = parser.next()? {
        match argument {
            Long("json") => (),
            argument => return Err(argument.unexpected()),
        }
    }
    let limits: Vec<String> = [
        ("max_threads", delete::MAX_THREADS as u64),
        ("auto_threads", concurrency::MAX_COMPUTING as u64),
        ("open_directories", delete::MAX_OPEN_DIRS),
        ("read_bytes", delete::BUFFER_BYTES as u64),
        // The allocator needs up to twice as much as the names.
        ("name_bytes", 2 * delete::MAX_NAME_BYTES as u64),
        ("min_shared_names", 2 * delete::SHARED_NAMES as u64),
    ]
    .iter()
    .map(|(name, limit)| format!("\"{name}\":{limit}"))
    .collect();
    let file_systems = KNOWN.iter().map(|known| {
        let (names, defers) = (
            known.names.join("\",\""),
            known.benefits_from_deferred_evict,
        );
        format!("{{\"names\":[\"{names}\"],\"defers_eviction\":{defers}}}")
    });
    let file_systems: Vec<String> = file_systems.collect();
    println!(
        "{{\"version\":\"{}\",\"record_format\":{},\"limits\":{{{}}},\
         \"file_systems\":[{}]}}",
        env!("CARGO_PKG_VERSION"),
        survey::RECORD_FORMAT,
        limits.join(","),
        file_systems.join(",")
    );
    Ok(ExitCode::SUCCESS)
}
