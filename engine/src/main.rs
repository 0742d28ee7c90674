//! `tui-fs-engine`: counts and deletes directory trees in parallel.

mod capabilities;
mod concurrency;
mod delete;
mod file_systems;
mod filters;
mod identity;
mod names;
mod quoting;
mod survey;
mod sys;
mod syscalls;
mod work_queue;

use std::process::ExitCode;

use lexopt::prelude::*;

const USAGE: &str = "\
tui-fs-engine counts and deletes directories with several threads. tui-fs runs
it; it also works alone, without Python and without libraries.

tui-fs-engine survey --totals [OPTION...] -- DIRECTORY...
    Count everything in directories. See tui-fs-engine survey --help.
tui-fs-engine delete [OPTION...] --pin DEV:INO:BIRTH... -- TARGET...
    Delete directories, without asking. See tui-fs-engine delete --help.
tui-fs-engine capabilities [--json]
    Print the version, the limits and the table of file systems.
tui-fs-engine --version
";

const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let mut parser = lexopt::Parser::from_env();
    match dispatch(&mut parser) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tui-fs-engine: {error}");
            ExitCode::from(USAGE_ERROR)
        }
    }
}

fn dispatch(parser: &mut lexopt::Parser) -> Result<ExitCode, lexopt::Error> {
    match parser.next()? {
        Some(Long("version")) => {
            println!("tui-fs-engine {}", env!("CARGO_PKG_VERSION"));
            Ok(ExitCode::SUCCESS)
        }
        Some(Long("help")) => {
            print!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        Some(Value(command)) if command == "delete" => {
            delete::Arguments::parse(parser).map(delete::run)
        }
        Some(Value(command)) if command == "survey" => survey::main(parser),
        Some(Value(command)) if command == "capabilities" => capabilities::main(parser),
        Some(argument) => Err(argument.unexpected()),
        None => Err("no command; see tui-fs-engine --help".into()),
    }
}
