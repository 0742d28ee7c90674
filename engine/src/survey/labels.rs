//! Suffixes of names and owners of entries, as further classes of the histograms.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::Mutex;

use super::histogram::MAX_CLASSES;
use super::records::LabelRecord;

/// A walker has a cell for each label.
pub const MAX_LABELS: usize = 1_000;

/// The class of the owner of the first root. It has no cells: it owns what no other owner has.
const MAIN_OWNER: u16 = MAX_CLASSES as u16;

const MAX_SUFFIX_BYTES: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// Padded with zeros.
    Suffix([u8; MAX_SUFFIX_BYTES]),
    Owner(u32),
}

impl Label {
    /// Returns what follows the last dot of a name: 1 to 8 letters and digits, the first one a
    /// letter, because numbers count files rather than name a kind.
    pub fn suffix_of(name: &CStr) -> Option<Self> {
        let name = name.to_bytes();
        let last = name.len().min(MAX_SUFFIX_BYTES + 1);
        let dot = name.len() - last + name[name.len() - last..].iter().rposition(|c| *c == b'.')?;
        let suffix = &name[dot + 1..];
        let is_kind = dot > 0
            && suffix.first().is_some_and(u8::is_ascii_alphabetic)
            && suffix.iter().all(u8::is_ascii_alphanumeric);
        is_kind.then(|| {
            let mut padded = [0; MAX_SUFFIX_BYTES];
            padded[..suffix.len()].copy_from_slice(suffix);
            Self::Suffix(padded)
        })
    }

    fn record(self, class: u16) -> LabelRecord {
        match self {
            Self::Suffix(padded) => {
                let suffix = padded.iter().copied().filter(|c| *c != 0).collect();
                LabelRecord(class, String::from_utf8(suffix).ok(), 0)
            }
            Self::Owner(uid) => LabelRecord(class, None, uid),
        }
    }
}

type Classes = HashMap<Label, u16>;

/// The classes of all labels, the first ones that were met. The main owner is the very first.
pub type LabelTable = Mutex<Classes>;

/// The labels that one walker knows.
#[derive(Debug)]
pub struct Labels<'a> {
    table: &'a LabelTable,
    known: Classes,
    /// The table is full, and all of it is known.
    is_whole: bool,
    last_suffix: (Label, Option<u16>),
    last_owner: (Label, Option<u16>),
}

impl<'a> Labels<'a> {
    pub fn new(table: &'a LabelTable) -> Self {
        let none = (Label::Suffix([0; MAX_SUFFIX_BYTES]), None);
        Self {
            table,
            known: HashMap::new(),
            is_whole: false,
            last_suffix: none,
            last_owner: none,
        }
    }

    /// Returns the class of a name's suffix; `None` if it has none, or too many came before it.
    pub fn suffix(&mut self, name: &CStr, new: &mut Vec<LabelRecord>) -> Option<u16> {
        let label = Label::suffix_of(name)?;
        if label != self.last_suffix.0 {
            self.last_suffix = (label, self.class(label, new));
        }
        self.last_suffix.1
    }

    /// Returns the class of an owner; `None` for the main one, or if too many came before it.
    pub fn owner(&mut self, uid: u32, new: &mut Vec<LabelRecord>) -> Option<u16> {
        let label = Label::Owner(uid);
        if label != self.last_owner.0 {
            let class = self.class(label, new);
            self.last_owner = (label, class.filter(|class| *class != MAIN_OWNER));
        }
        self.last_owner.1
    }

    fn class(&mut self, label: Label, new: &mut Vec<LabelRecord>) -> Option<u16> {
        if let Some(class) = self.known.get(&label) {
            return Some(*class);
        }
        if self.is_whole {
            return None;
        }
        let mut table = self.table.lock().expect("no walker panics");
        let class = match table.get(&label) {
            Some(class) => *class,
            None if table.len() == MAX_LABELS => {
                self.known.clone_from(&table);
                self.is_whole = true;
                return None;
            }
            None => {
                let class = (MAX_CLASSES + table.len()) as u16;
                table.insert(label, class);
                new.push(label.record(class));
                class
            }
        };
        self.known.insert(label, class);
        Some(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suffix_is_short_and_begins_with_a_letter() {
        let suffix = |name: &CStr| match Label::suffix_of(name) {
            Some(label) => label.record(0).1,
            None => None,
        };
        for (name, expected) in [
            (c"a.log", Some("log")),
            (c".a.Tar", Some("Tar")),
            (c"a.log.gz", Some("gz")),
            (c"a.12345678", None),
            (c"a.mp4", Some("mp4")),
            (c"a.abcdefgh", Some("abcdefgh")),
            (c"a.abcdefghi", None),
            (c"a.b-c", None),
            (c"a.\xc3\xa9", None),
            (c".bashrc", None),
            (c"a.", None),
            (c"log", None),
            (c"", None),
        ] {
            assert_eq!(suffix(name).as_deref(), expected, "{name:?}");
        }
    }

    #[test]
    fn walkers_agree_on_the_classes_and_each_is_announced_once() {
        let table = LabelTable::default();
        let (mut first, mut second) = (Labels::new(&table), Labels::new(&table));
        let mut new = Vec::new();
        assert_eq!(first.owner(7, &mut new), None);
        assert_eq!(second.owner(7, &mut new), None);
        for number in 0..2 * MAX_LABELS as u32 {
            let class = first.owner(100 + number, &mut new);
            assert_eq!(second.owner(100 + number, &mut new), class);
            assert_eq!(class.is_some(), (number as usize) < MAX_LABELS - 1);
        }
        assert_eq!(first.suffix(c"a.log", &mut new), None); // too late
        assert_eq!(first.owner(100, &mut new), Some(17));
        let classes: Vec<_> = new.iter().map(|record| record.0).collect();
        assert_eq!(classes, (16..16 + MAX_LABELS as u16).collect::<Vec<_>>());
    }
}
