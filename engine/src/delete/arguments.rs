//! The command line of `delete`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use lexopt::prelude::*;

use crate::filters::Filters;
use crate::identity::DirIdentity;

/// The parsed command line.
#[derive(Debug, Default)]
pub struct Arguments {
    /// Normalized paths, or only `.`.
    pub targets: Vec<OsString>,
    /// Identities of the targets, in their order.
    pub pins: Vec<DirIdentity>,
    pub keep_root: bool,
    /// The targets are the roots of mounts that were made for this run.
    pub own_mounts: bool,
    /// `None` to choose the number.
    pub threads: Option<usize>,
    pub rate_per_s: Option<u32>,
    pub is_gentle: bool,
    pub filters: Filters,
    pub report_interval: Option<Duration>,
}

pub const USAGE: &str = "\
tui-fs-engine delete [OPTION...] --pin DEV:INO:BIRTH... -- TARGET...

Deletes directories with everything in them, without asking and without undo.
tui-fs runs it after its safety checks and a confirmation. Where tui-fs is
installed, use 'tui-fs delete --strategy parallel PATH...' instead.

A target is a normalized path (no `.` or `..`) without symbolic links. The
single target `.` is the working directory, which is emptied and kept.

what is deleted (with a filter, directories are kept):
  --pin DEV:INO:BIRTH    required: one for each target, in order: device, inode
                         and birth time (nanoseconds since 1970, 0: unknown);
                         another directory at the path is not touched
  --keep-root            empty the targets but do not remove them
  --own-mounts           accept targets that are the roots of mounts: tui-fs has
                         mounted them for this run, and removes them afterwards
  --name GLOB            only entries whose name matches (find -name)
  --min-size BYTES       only regular files of at least this size
  --size-below BYTES     only regular files smaller than this
  --modified-before S    only entries last modified at or before this time
                         (seconds since the epoch)
  --modified-after S     only entries last modified after this time
  --share K/N            only the K-th of N shares of the entries directly in a
                         target, directories with everything in them

how:
  --threads N            use N threads (default: 0, the engine chooses)
  --rate N               remove at most N entries per second (default: no limit)
  --gentle               truncate large files in steps

output:
  --every MS             milliseconds between reports (default: 250)

Standard output: one JSON object per line. Standard input: pause, resume,
cancel, rate N|off, threads N|auto, gentle on|off.
Exit codes: 0 everything was removed, 1 some entries failed, 2 usage error,
3 refused (a target is the root of a mount, or TUI_FS_READ_ONLY is set),
130 cancelled.

example, by hand: count the directory first, and note what stat prints. Only
this directory is deleted, even if another one is at the path later:
  stat -c %d:%i:0 /var/cache/app
  tui-fs-engine survey --totals -- /var/cache/app
  tui-fs-engine delete --pin 65024:1234:0 -- /var/cache/app
";

impl Arguments {
    pub fn parse(parser: &mut lexopt::Parser) -> Result<Self, lexopt::Error> {
        let mut arguments = Self::default();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("keep-root") => arguments.keep_root = true,
                Long("own-mounts") => arguments.own_mounts = true,
                Long("gentle") => arguments.is_gentle = true,
                Long("pin") => arguments.pins.push(parser.value()?.parse()?),
                Long("threads") => {
                    let number: usize = parser.value()?.parse()?;
                    arguments.threads = (number > 0).then_some(number);
                }
                Long("rate") => {
                    let number: u32 = parser.value()?.parse()?;
                    arguments.rate_per_s = (number > 0).then_some(number);
                }
                Long("every") => {
                    let milliseconds: u64 = parser.value()?.parse()?;
                    arguments.report_interval = Some(Duration::from_millis(milliseconds.max(1)));
                }
                Long("help") => {
                    print!("{USAGE}");
                    std::process::exit(0);
                }
                Value(target) => arguments.targets.push(target),
                Long(option) => {
                    let option = option.to_owned();
                    arguments.filters.parse_option(&option, parser)?;
                }
                argument => return Err(argument.unexpected()),
            }
        }
        arguments.check()?;
        Ok(arguments)
    }

    fn check(&self) -> Result<(), lexopt::Error> {
        if self.targets.is_empty() {
            return Err("no target".into());
        }
        if self.pins.len() != self.targets.len() {
            // A user who runs the engine directly has bypassed the safety rules and the question.
            let message = "every target needs its own --pin; to delete directories, use: \
                            tui-fs delete --strategy parallel PATH";
            return Err(message.into());
        }
        for target in &self.targets {
            let path = target.as_bytes();
            let is_cwd = path == b"." && self.targets.len() == 1;
            let is_normalized = path
                .strip_prefix(b"/")
                .unwrap_or(path)
                .split(|&byte| byte == b'/')
                .all(|name| !name.is_empty() && name != b"." && name != b"..");
            if !is_cwd && !is_normalized {
                let shown = crate::quoting::quoted(path);
                return Err(format!("{shown} is not a normalized path").into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Arguments, String> {
        let words = ["delete"].iter().chain(arguments);
        Arguments::parse(&mut lexopt::Parser::from_iter(words)).map_err(|error| error.to_string())
    }

    #[test]
    fn only_normalized_paths_are_targets() {
        let targets = |arguments: &[&str]| {
            let mut all: Vec<&str> = arguments.iter().flat_map(|_| ["--pin", "7:9:0"]).collect();
            all.push("--");
            all.extend(arguments);
            parsed(&all).map(|arguments| arguments.targets)
        };
        assert_eq!(targets(&["/a/-b", "/c d"]).unwrap(), ["/a/-b", "/c d"]);
        assert_eq!(targets(&["."]).unwrap(), ["."]);
        assert_eq!(targets(&["a/b", "-"]).unwrap(), ["a/b", "-"]);
        for invalid in [
            "", "/", "..", "a/", "/a/", "/a//b", "/a/../b", "/a/./b", "./a",
        ] {
            assert!(targets(&[invalid]).is_err(), "{invalid:?}");
        }
        assert!(targets(&[".", "/a"]).is_err());
        assert!(targets(&[]).is_err());
    }

    #[test]
    fn each_target_needs_a_pin() {
        let arguments = parsed(&["--pin", "7:9:8", "--", "/a"]).unwrap();
        assert_eq!(arguments.pins, ["7:9:8".parse().unwrap()]);
        assert!(parsed(&["--pin", "7:9:8", "--", "/a", "/b"]).is_err());
        for without in [&["--", "/a"][..], &["."][..]] {
            assert!(parsed(without).unwrap_err().contains("tui-fs delete"));
        }
        assert!(parsed(&["--pin", "7:9", "--", "/a"]).is_err());
    }

    #[test]
    fn unknown_options_are_refused() {
        for invalid in [
            &["--force"][..],
            &["--keep"][..],
            &["--rat", "5"][..],
            &["-y"][..],
            &["--min-size", "-1"][..],
            &["--keep-root=yes"][..],
        ] {
            let all = [invalid, &["--pin", "7:9:0", "--", "/a"]].concat();
            assert!(parsed(&all).is_err(), "{invalid:?}");
        }
    }
}
