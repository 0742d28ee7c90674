//! The command line of `survey`.

use std::path::PathBuf;

use lexopt::prelude::*;

use super::histogram::Classes;
use crate::filters::Filters;
use crate::identity::DevIno;

const MAX_THREADS: usize = 64;

const USAGE: &str = "\
tui-fs-engine survey --totals [OPTION...] -- DIRECTORY...

Counts everything in directories and changes nothing. It stays on the file
system of each directory and follows no symbolic link. Without --totals it
writes records for tui-fs, in MessagePack.

  --totals               print the sums: entries by kind, and bytes; a file with
                         several names counts as several entries, and its bytes
                         once
  --threads N            use N threads (default: 0, one per processor)

for tui-fs:
  --name GLOB            also count the entries whose name matches (find -name);
                         also --min-size, --size-below, --modified-before,
                         --modified-after, --share: see delete --help
  --classes LIMITS       count by age, size, suffix and owner
  --pin DEV:INO          one for each directory: fail if another one is there
  --private-group GID    a group in which only you are
  --parent PID           end with this process

Exit codes: 0 everything was counted, 1 a directory could not be read, 2 usage
error.

example:
  tui-fs-engine survey --totals -- /var/cache/app
";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// Print sums instead of records.
    pub totals: bool,
    /// `None` for one per processor.
    pub threads: Option<usize>,
    pub filters: Filters,
    /// Of the histograms; `None` for no histogram.
    pub classes: Option<Classes>,
    /// Groups without members other than this user and root.
    pub private_groups: Vec<u32>,
    /// Identities of the roots, in their order; empty for no check.
    pub pins: Vec<DevIno>,
    /// The process whose end ends this one.
    pub parent: Option<i32>,
    pub roots: Vec<PathBuf>,
}

impl Args {
    pub fn parse(arguments: &mut lexopt::Parser) -> Result<Self, lexopt::Error> {
        let mut args = Self::default();
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("help") => {
                    print!("{USAGE}");
                    std::process::exit(0);
                }
                Long("totals") => args.totals = true,
                Long("threads") => {
                    let threads: usize = arguments.value()?.parse()?;
                    args.threads = (threads > 0).then_some(threads.min(MAX_THREADS));
                }
                Long("classes") => {
                    let limits = arguments.value()?.string()?;
                    let classes = Classes::parse(&limits);
                    args.classes = Some(classes.ok_or("--classes needs ascending limits")?);
                }
                Long("pin") => args.pins.push(arguments.value()?.parse()?),
                Long("private-group") => args.private_groups.push(arguments.value()?.parse()?),
                Long("parent") => args.parent = Some(arguments.value()?.parse()?),
                Value(root) => args.roots.push(root.into()),
                Long(option) => {
                    let option = option.to_owned();
                    args.filters.parse_option(&option, arguments)?;
                }
                argument => return Err(argument.unexpected()),
            }
        }
        args.checked()
    }

    fn checked(self) -> Result<Self, lexopt::Error> {
        if self.roots.is_empty() {
            return Err("no directory".into());
        }
        if !self.pins.is_empty() && self.pins.len() != self.roots.len() {
            return Err("--pin must be given for every directory, or for none".into());
        }
        if self.totals && self.filters != Filters::default() {
            return Err("--totals cannot be combined with a filter".into());
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Args, String> {
        Args::parse(&mut lexopt::Parser::from_args(words)).map_err(|error| error.to_string())
    }

    #[test]
    fn all_options_are_parsed() {
        let words =
            "--classes -1,2:0,9 --threads 3 --name *.o --pin 1:2 --pin 3:4 --private-group 5 \
                     --private-group 6 --parent 7 -- /a /-b"
                .split_whitespace();
        let expected = Args {
            totals: false,
            threads: Some(3),
            filters: Filters {
                name_glob: Some(c"*.o".to_owned()),
                ..Filters::default()
            },
            classes: Classes::parse("-1,2:0,9"),
            private_groups: vec![5, 6],
            pins: vec![
                DevIno {
                    device: 1,
                    inode: 2,
                },
                DevIno {
                    device: 3,
                    inode: 4,
                },
            ],
            parent: Some(7),
            roots: vec!["/a".into(), "/-b".into()],
        };
        assert_eq!(parsed(&words.collect::<Vec<_>>()), Ok(expected));
        let sizes = parsed(&["--min-size=9", "--modified-before=-5", "--threads=0", "/a"]);
        let filters = Filters {
            min_size_bytes: Some(9),
            modified_before_s: Some(-5),
            ..Filters::default()
        };
        assert_eq!(
            sizes.map(|args| (args.filters, args.threads)),
            Ok((filters, None))
        );
    }

    #[test]
    fn invalid_options_are_refused() {
        for words in [
            &[][..],
            &["--threads", "many", "/a"],
            &["--pin", "1:2", "/a", "/b"],
            &["--pin", "1", "/a"],
            &["--pin", "1:x", "/a"],
            &["--classes", "1", "/a"],
            &["--totals", "--name", "*.o", "/a"],
            &["--unknown", "/a"],
        ] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
    }
}
