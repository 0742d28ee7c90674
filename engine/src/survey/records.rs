//! The survey's records in MessagePack (docs/record-format.md). Python reads them with
//! tui_fs/survey/records.py.

use rmp::encode;

use super::histogram::Histogram;

/// The version of the format, which is the first message. It changes with every change.
pub const FORMAT: u64 = 6;

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
    pub sums: Sums,
    pub matched: Matched,
    pub histogram: Histogram,
    pub own_bytes: u64,
    pub own_allocated_bytes: u64,
    pub longest_name: u64,
    pub pending: i64,
    pub flags: u32,
}

/// Sums of entries of a directory, and the times of the oldest and the newest one; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    pub subdirectories: u64,
    pub files: u64,
    pub symlinks: u64,
    pub other: u64,
    pub apparent_bytes: u64,
    pub allocated_bytes: u64,
    pub oldest_s: i64,
    pub newest_s: i64,
    pub name_bytes: u64,
    pub record_bytes: u64,
}

/// Entries of a directory that the filters select. Inodes with several names have only their times
/// here; their links say whether they match.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Matched {
    /// Files, symbolic links, other.
    pub entries: [u64; 3],
    pub apparent_bytes: u64,
    pub allocated_bytes: u64,
    pub oldest_s: i64,
    pub newest_s: i64,
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
    pub modified_s: i64,
}

/// A large file. `device` and `inode` are 0 if it has no other name.
#[derive(Clone, Copy, Debug)]
pub struct BigFile<'a> {
    pub directory: u64,
    pub name: &'a [u8],
    pub apparent_bytes: u64,
    pub allocated_bytes: u64,
    pub modified_s: i64,
    pub device: u64,
    pub inode: u64,
}

/// The records of a walker since its last message.
#[derive(Debug, Default)]
pub struct Batch {
    dir_records: RecordBuffer,
    links: RecordBuffer,
    big_files: RecordBuffer,
    matched: RecordBuffer,
    cells: Cells,
    /// Names that vanished before their stat.
    pub vanished: u64,
}

/// Records of one type.
#[derive(Debug, Default)]
struct RecordBuffer {
    encoded: Vec<u8>,
    count: u32,
}

impl RecordBuffer {
    fn begin(&mut self, fields: u32) -> &mut Vec<u8> {
        self.count += 1;
        put_array(&mut self.encoded, fields);
        &mut self.encoded
    }

    fn move_to(&mut self, out: &mut Vec<u8>) {
        put_array(out, self.count);
        out.append(&mut self.encoded);
        self.count = 0;
    }
}

/// The histograms of directories, in columns: the reader takes them without a step for each cell.
#[derive(Debug, Default)]
pub struct Cells {
    directories: Vec<u8>,
    classes: Vec<u8>,
    entries: Vec<u8>,
    allocated_bytes: Vec<u8>,
}

impl Cells {
    pub fn add(&mut self, directory: u64, class: u8, entries: u32, allocated_bytes: u64) {
        self.directories.extend_from_slice(&directory.to_ne_bytes());
        self.classes.push(class);
        self.entries.extend_from_slice(&entries.to_ne_bytes());
        (self.allocated_bytes).extend_from_slice(&allocated_bytes.to_ne_bytes());
    }

    fn len(&self) -> usize {
        self.directories.len()
            + self.classes.len()
            + self.entries.len()
            + self.allocated_bytes.len()
    }

    fn move_to(&mut self, out: &mut Vec<u8>) {
        let cells = std::mem::take(self);
        put_array(out, 4);
        for column in [
            cells.directories,
            cells.classes,
            cells.entries,
            cells.allocated_bytes,
        ] {
            put_bytes(out, &column);
        }
    }
}

/// Sums of one record stay below this, so that one more entry does not overflow them.
const MAX_SUM_BYTES: u64 = 1 << 63;

/// Returns whether a sum of sizes must be emitted before another size is added. A size is less than
/// 2^63.
pub fn is_full(sums: &[u64]) -> bool {
    sums.iter().any(|sum| *sum >= MAX_SUM_BYTES)
}

impl Batch {
    pub fn dir_record_count(&self) -> u32 {
        self.dir_records.count
    }

    fn is_empty(&self) -> bool {
        self.dir_records.count + self.links.count + self.big_files.count == 0 && self.vanished == 0
    }

    pub fn add_dir_record(&mut self, record: &DirRecord<'_>) {
        let out = self.dir_records.begin(18);
        put_uint(out, record.number);
        put_int(out, record.parent);
        put_bytes(out, record.name);
        let sums = &record.sums;
        for number in [
            sums.subdirectories,
            sums.files,
            sums.symlinks,
            sums.other,
            sums.apparent_bytes,
            sums.allocated_bytes,
            record.own_bytes,
            record.own_allocated_bytes,
        ] {
            put_uint(out, number);
        }
        put_int(out, sums.oldest_s);
        put_int(out, sums.newest_s);
        put_uint(out, sums.name_bytes);
        put_uint(out, sums.record_bytes);
        put_uint(out, record.longest_name);
        put_int(out, record.pending);
        put_uint(out, record.flags.into());
        if record.matched != Matched::default() {
            self.add_matched(record.number, &record.matched);
        }
        record.histogram.move_to(record.number, &mut self.cells);
    }

    fn add_matched(&mut self, directory: u64, matched: &Matched) {
        let out = self.matched.begin(8);
        put_uint(out, directory);
        for number in matched.entries {
            put_uint(out, number);
        }
        put_uint(out, matched.apparent_bytes);
        put_uint(out, matched.allocated_bytes);
        put_int(out, matched.oldest_s);
        put_int(out, matched.newest_s);
    }

    pub fn add_link(&mut self, link: &Link) {
        let out = self.links.begin(9);
        for number in [
            link.directory,
            link.device,
            link.inode,
            link.names.into(),
            link.apparent_bytes,
            link.allocated_bytes,
            link.kind.into(),
        ] {
            put_uint(out, number);
        }
        encode::write_bool(out, link.is_matched).expect(IN_MEMORY);
        put_int(out, link.modified_s);
    }

    pub fn add_big_file(&mut self, file: &BigFile<'_>) {
        let out = self.big_files.begin(7);
        put_uint(out, file.directory);
        put_bytes(out, file.name);
        put_uint(out, file.apparent_bytes);
        put_uint(out, file.allocated_bytes);
        put_int(out, file.modified_s);
        put_uint(out, file.device);
        put_uint(out, file.inode);
    }

    /// Takes all records as a message; `None` if there are none.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        let bytes = self.dir_records.encoded.len() + self.links.encoded.len();
        let bytes = bytes + self.big_files.encoded.len() + self.matched.encoded.len();
        let bytes = bytes + self.cells.len();
        let mut out = Vec::with_capacity(bytes + 128);
        put_array(&mut out, 6);
        self.dir_records.move_to(&mut out);
        self.links.move_to(&mut out);
        self.big_files.move_to(&mut out);
        self.matched.move_to(&mut out);
        self.cells.move_to(&mut out);
        put_uint(&mut out, std::mem::take(&mut self.vanished));
        Some(out)
    }
}

/// Returns the first message.
pub fn format_message() -> Vec<u8> {
    let mut out = Vec::new();
    put_uint(&mut out, FORMAT);
    out
}

/// Returns the last message.
pub fn end_message() -> Vec<u8> {
    let mut out = Vec::new();
    encode::write_nil(&mut out).expect(IN_MEMORY);
    out
}

const IN_MEMORY: &str = "a write to memory does not fail";

fn put_array(out: &mut Vec<u8>, length: u32) {
    encode::write_array_len(out, length).expect(IN_MEMORY);
}

fn put_uint(out: &mut Vec<u8>, value: u64) {
    encode::write_uint(out, value).expect(IN_MEMORY);
}

fn put_int(out: &mut Vec<u8>, value: i64) {
    encode::write_sint(out, value).expect(IN_MEMORY);
}

fn put_bytes(out: &mut Vec<u8>, value: &[u8]) {
    encode::write_bin(out, value).expect(IN_MEMORY);
}
