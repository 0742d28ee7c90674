//! What is asked of a survey on the command line.

use std::path::PathBuf;

use lexopt::prelude::*;

use crate::filters::Filters;
use crate::identity::DevIno;

const MOST_THREADS: usize = 64;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub names_only: bool,
    /// `None`: as many as there are processors.
    pub threads: Option<usize>,
    pub filters: Filters,
    /// Groups in which nobody is but this user and root.
    pub private_groups: Vec<u32>,
    /// What stands at the paths of the roots, in their order; empty if anything may.
    pub pins: Vec<DevIno>,
    /// The process with which this one shall end.
    pub parent: Option<i32>,
    pub roots: Vec<PathBuf>,
}

impl Request {
    pub fn parse(arguments: &mut lexopt::Parser) -> Result<Self, lexopt::Error> {
        let mut request = Self::default();
        while let Some(argument) = arguments.next()? {
            match argument {
                Long("names-only") => request.names_only = true,
                Long("threads") => {
                    let threads: usize = arguments.value()?.parse()?;
                    request.threads = (threads > 0).then_some(threads.min(MOST_THREADS));
                }
                Long("pin") => request.pins.push(arguments.value()?.parse()?),
                Long("private-group") => request.private_groups.push(arguments.value()?.parse()?),
                Long("parent") => request.parent = Some(arguments.value()?.parse()?),
                Value(root) => request.roots.push(root.into()),
                Long(option) => {
                    let option = option.to_owned();
                    if !request.filters.take(&option, arguments)? {
                        return Err(Long(&option).unexpected());
                    }
                }
                other => return Err(other.unexpected()),
            }
        }
        request.checked()
    }

    fn checked(self) -> Result<Self, lexopt::Error> {
        if self.roots.is_empty() {
            return Err("survey needs a directory".into());
        }
        if !self.pins.is_empty() && self.pins.len() != self.roots.len() {
            return Err("--pin must be given for every directory, or for none".into());
        }
        if self.names_only && self.filters.need_status() {
            return Err("--names-only knows neither sizes nor times".into());
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Request, String> {
        Request::parse(&mut lexopt::Parser::from_args(words)).map_err(|why| why.to_string())
    }

    #[test]
    fn everything_can_be_asked() {
        let words = "--names-only --threads 3 --name *.o --pin 1:2 --pin 3:4 --private-group 5 \
                     --private-group 6 --parent 7 -- /a /-b"
            .split_whitespace();
        let expected = Request {
            names_only: true,
            threads: Some(3),
            filters: Filters {
                name_glob: Some(c"*.o".to_owned()),
                ..Filters::default()
            },
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
            name_glob: None,
        };
        assert_eq!(
            sizes.map(|one| (one.filters, one.threads)),
            Ok((filters, None))
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for words in [
            &[][..],
            &["--threads", "many", "/a"],
            &["--pin", "1:2", "/a", "/b"],
            &["--pin", "1", "/a"],
            &["--pin", "1:x", "/a"],
            &["--names-only", "--min-size", "1", "/a"],
            &["--unknown", "/a"],
        ] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
    }
}
