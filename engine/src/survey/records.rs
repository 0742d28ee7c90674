//! The survey's records in MessagePack (docs/record-format.md). Python reads them with
//! tui_fs/survey/records.py. Each structure is an array of its fields in this order.

use serde::Serialize;

/// The version of the format, which is the first message. It changes with every change.
pub const FORMAT: u64 = 7;

pub const NO_PARENT: i64 = -1;

/// Flags of a directory or of names in it. The numbers are those of `DirectoryFlag` in Python.
pub mod flag {
    pub const UNREADABLE: u32 = 1 << 0;
    pub const IMMUTABLE: u32 = 1 << 1;
    pub const APPEND_ONLY: u32 = 1 << 2;
    pub const ELSEWHERE: u32 = 1 << 3;
    pub const SHARED: u32 = 1 << 4;
    pub const UNWRITABLE: u32 = 1 << 5;
    pub const STICKY: u32 = 1 << 6;
    pub const CHANGED: u32 = 1 << 7;
    pub const CONTROL_NAMES: u32 = 1 << 8;
    pub const UNDECODABLE_NAMES: u32 = 1 << 9;
    pub const DASH_NAMES: u32 = 1 << 10;
    pub const SPACE_NAMES: u32 = 1 << 11;
    pub const LONG_NAMES: u32 = 1 << 12;
    pub const FOREIGN_OWNERS: u32 = 1 << 13;
    pub const SUBVOLUME: u32 = 1 << 14;
    pub const VANISHED: u32 = 1 << 15;
    pub const LOCKED_FILES: u32 = 1 << 16;
}

/// A part of one directory. The records of one directory add up.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct DirRecord {
    pub number: u64,
    pub parent: i64,
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    pub subdirectories: u64,
    pub files: u64,
    pub symlinks: u64,
    pub other: u64,
    pub apparent_bytes: u64,
    pub allocated_bytes: u64,
    pub own_bytes: u64,
    pub own_allocated_bytes: u64,
    /// Times of the oldest and the newest entry; 0 for none.
    pub oldest_s: i64,
    pub newest_s: i64,
    pub name_bytes: u64,
    pub record_bytes: u64,
    pub longest_name: u64,
    pub pending: i64,
    pub flags: u32,
}

impl DirRecord {
    /// Returns a record without sums that is not the first one of its directory.
    pub fn new(number: u64) -> Self {
        Self {
            number,
            parent: NO_PARENT,
            ..Self::default()
        }
    }

    /// Returns whether the sums must be emitted before another entry is added.
    pub fn is_full(&self) -> bool {
        self.apparent_bytes.max(self.allocated_bytes) >= MAX_SUM_BYTES
    }
}

/// Entries of a directory that the filters select. Inodes with several names have only their times
/// here; their links say whether they match.
#[derive(Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Matched {
    pub directory: u64,
    pub files: u64,
    pub symlinks: u64,
    pub other: u64,
    pub apparent_bytes: u64,
    pub allocated_bytes: u64,
    pub oldest_s: i64,
    pub newest_s: i64,
}

/// A name of an inode with several names.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Link {
    pub directory: u64,
    pub device: u64,
    pub inode: u64,
    pub names: u32,
    pub apparent_bytes: u64,
    pub allocated_bytes: u64,
    pub kind: u8,
    pub is_matched: bool,
    pub modified_s: i64,
    /// Classes of its labels; 0 for none.
    pub suffix: u16,
    pub owner: u16,
}

/// The meaning of a class beyond those of times and sizes: a suffix, else an owner.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct LabelRecord(pub u16, pub Option<String>, pub u32);

/// A large file. `device` and `inode` are 0 if it has no other name.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct BigFile {
    pub directory: u64,
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    pub apparent_bytes: u64,
    pub allocated_bytes: u64,
    pub modified_s: i64,
    pub device: u64,
    pub inode: u64,
}

/// The histograms of directories, in columns: the reader takes them without a step for each cell.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Cells {
    #[serde(with = "serde_bytes")]
    pub directories: Vec<u8>,
    #[serde(with = "serde_bytes")]
    pub classes: Vec<u8>,
    #[serde(with = "serde_bytes")]
    pub entries: Vec<u8>,
    #[serde(with = "serde_bytes")]
    pub allocated_bytes: Vec<u8>,
}

impl Cells {
    pub fn add(&mut self, directory: u64, class: u16, entries: u32, allocated_bytes: u64) {
        self.directories.extend_from_slice(&directory.to_ne_bytes());
        self.classes.extend_from_slice(&class.to_ne_bytes());
        self.entries.extend_from_slice(&entries.to_ne_bytes());
        (self.allocated_bytes).extend_from_slice(&allocated_bytes.to_ne_bytes());
    }
}

/// The records of a walker since its last message.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub struct Batch {
    pub dir_records: Vec<DirRecord>,
    pub links: Vec<Link>,
    pub big_files: Vec<BigFile>,
    pub matched: Vec<Matched>,
    pub cells: Cells,
    /// Names that vanished before their stat.
    pub vanished: u64,
    pub labels: Vec<LabelRecord>,
}

/// Sums of one record stay below this, so that one more entry does not overflow them. A size is less
/// than 2^63.
const MAX_SUM_BYTES: u64 = 1 << 63;

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.dir_records.is_empty()
            && self.links.is_empty()
            && self.big_files.is_empty()
            && self.vanished == 0
    }
}
