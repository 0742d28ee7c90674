//! The records of tui_fs/survey/records.py, written with marshal.

use super::marshal;

/// The first message. It changes with every change of the format.
pub const FORMAT: i128 = 3;

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
#[derive(Clone, Copy, Debug, Default)]
pub struct DirRecord<'a> {
    pub number: u64,
    pub parent: i64,
    pub name: &'a [u8],
    pub subdirectories: u64,
    pub files: u64,
    pub symlinks: u64,
    pub other: u64,
    pub apparent_bytes: u128,
    pub allocated_bytes: u128,
    pub own_bytes: u64,
    pub own_allocated_bytes: u64,
    pub oldest_s: i64,
    pub newest_s: i64,
    pub name_bytes: u64,
    pub record_bytes: u64,
    pub longest_name: u64,
    pub pending: i64,
    pub flags: u32,
}

/// A name of an inode with several names.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub directory: u64,
    pub device: u64,
    pub inode: u64,
    pub names: u32,
    pub apparent_bytes: u64,
    pub allocated_bytes: u64,
    pub kind: u8,
    pub is_matched: bool,
}

/// A large file. `identity` is 0 if it has no other name.
#[derive(Clone, Copy, Debug)]
pub struct BigFile<'a> {
    pub directory: u64,
    pub name: &'a [u8],
    pub apparent_bytes: u64,
    pub allocated_bytes: u64,
    pub modified_s: i64,
    pub identity: u128,
}

/// The records of a walker since its last message.
#[derive(Debug, Default)]
pub struct Batch {
    dir_records: RecordBuffer,
    links: RecordBuffer,
    big_files: RecordBuffer,
    /// Entries selected by the filters: files, symlinks, other, apparent and allocated bytes.
    pub matched: [u128; 5],
    /// Names that vanished before their stat.
    pub vanished: u64,
}

#[derive(Debug, Default)]
struct RecordBuffer {
    written: Vec<u8>,
    number: u32,
}

impl RecordBuffer {
    fn begin(&mut self, fields: u8) -> &mut Vec<u8> {
        self.number += 1;
        marshal::tuple(&mut self.written, fields);
        &mut self.written
    }

    fn move_to(&mut self, out: &mut Vec<u8>) {
        marshal::list(out, self.number);
        out.append(&mut self.written);
        self.number = 0;
    }
}

impl Batch {
    pub fn dir_record_count(&self) -> u32 {
        self.dir_records.number
    }

    fn is_empty(&self) -> bool {
        self.dir_records.number + self.links.number + self.big_files.number == 0
            && self.vanished == 0
            && self.matched == [0; 5]
    }

    pub fn add_dir_record(&mut self, record: &DirRecord<'_>) {
        let out = self.dir_records.begin(18);
        marshal::integer(out, record.number.into());
        marshal::integer(out, record.parent.into());
        marshal::bytes(out, record.name);
        for number in [
            record.subdirectories,
            record.files,
            record.symlinks,
            record.other,
        ] {
            marshal::integer(out, number.into());
        }
        marshal::integer(out, record.apparent_bytes as i128);
        marshal::integer(out, record.allocated_bytes as i128);
        marshal::integer(out, record.own_bytes.into());
        marshal::integer(out, record.own_allocated_bytes.into());
        marshal::integer(out, record.oldest_s.into());
        marshal::integer(out, record.newest_s.into());
        marshal::integer(out, record.name_bytes.into());
        marshal::integer(out, record.record_bytes.into());
        marshal::integer(out, record.longest_name.into());
        marshal::integer(out, record.pending.into());
        marshal::integer(out, record.flags.into());
    }

    pub fn add_link(&mut self, link: &Link) {
        let out = self.links.begin(8);
        marshal::integer(out, link.directory.into());
        marshal::integer(out, link.device.into());
        marshal::integer(out, link.inode.into());
        marshal::integer(out, link.names.into());
        marshal::integer(out, link.apparent_bytes.into());
        marshal::integer(out, link.allocated_bytes.into());
        marshal::integer(out, link.kind.into());
        marshal::boolean(out, link.is_matched);
    }

    pub fn add_big_file(&mut self, file: &BigFile<'_>) {
        let out = self.big_files.begin(6);
        marshal::integer(out, file.directory.into());
        marshal::bytes(out, file.name);
        marshal::integer(out, file.apparent_bytes.into());
        marshal::integer(out, file.allocated_bytes.into());
        marshal::integer(out, file.modified_s.into());
        marshal::integer(out, file.identity as i128);
    }

    /// Takes all records as a message; `None` if there are none.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        (!self.is_empty()).then(|| self.message(false))
    }

    /// Returns the last message.
    pub fn last() -> Vec<u8> {
        Self::default().message(true)
    }

    fn message(&mut self, is_last: bool) -> Vec<u8> {
        let whole = self.dir_records.written.len() + self.links.written.len();
        let mut out = Vec::with_capacity(whole + self.big_files.written.len() + 128);
        marshal::tuple(&mut out, 7);
        self.dir_records.move_to(&mut out);
        self.links.move_to(&mut out);
        self.big_files.move_to(&mut out);
        marshal::tuple(&mut out, 5);
        for number in std::mem::take(&mut self.matched) {
            marshal::integer(&mut out, number as i128);
        }
        marshal::integer(&mut out, std::mem::take(&mut self.vanished).into());
        marshal::none(&mut out);
        marshal::boolean(&mut out, is_last);
        out
    }
}
