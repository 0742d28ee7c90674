//! A reader of the survey's messages, and a naive walk to compare with.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::args::Args;
use super::emitter::Output;
use super::name_flags::name_flags;
use super::records::{flag, Batch, DirRecord, FORMAT};
use super::walker::Walker;
use super::Limits;

/// Sums of one directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirTotals {
    /// Subdirectories, files, symbolic links, other.
    pub entries: [i128; 4],
    /// Apparent and allocated bytes of entries with one name.
    pub bytes: [i128; 2],
    /// The same of the directory itself.
    pub own: [i128; 2],
    /// Oldest and newest modification.
    pub dates_s: [i128; 2],
    /// Bytes of names that are not directories, bytes of dirents, bytes of the longest name.
    pub names: [i128; 3],
    pub flags: u32,
}

/// Flags that the naive walk computes.
pub const NAME_FLAGS: u32 = flag::CONTROL_NAMES
    | flag::UNDECODABLE_NAMES
    | flag::DASH_NAMES
    | flag::SPACE_NAMES
    | flag::LONG_NAMES;

/// The sums of all messages.
#[derive(Debug, Default)]
pub struct Collected {
    /// By path.
    pub directories: BTreeMap<Vec<u8>, DirTotals>,
    /// Directory, device, inode, names, kind.
    pub links: Vec<(Vec<u8>, [i128; 4])>,
    pub vanished: i128,
    pub messages: usize,
    pub has_ended: bool,
    paths: HashMap<u64, Vec<u8>>,
    pending: HashMap<u64, i64>,
}

impl Collected {
    fn add_message(&mut self, mut message: &[u8]) {
        self.messages += 1;
        if self.messages == 1 {
            assert_eq!(rmp_serde::from_slice::<u64>(message).ok(), Some(FORMAT));
            return;
        }
        assert!(!self.has_ended, "a message after the last one");
        let batch: Option<Batch> = rmp_serde::from_read(&mut message).expect("a batch or nil");
        assert!(message.is_empty(), "data after the value");
        match batch {
            Some(batch) => self.add_batch(batch),
            None => self.has_ended = true,
        }
    }

    fn add_batch(&mut self, batch: Batch) {
        for record in batch.dir_records {
            self.add_dir_record(record);
        }
        for link in batch.links {
            let numbers = [link.device, link.inode, link.names.into(), link.kind.into()];
            let path = self.paths[&link.directory].clone();
            self.links.push((path, numbers.map(i128::from)));
        }
        self.vanished += i128::from(batch.vanished);
    }

    fn add_dir_record(&mut self, record: DirRecord) {
        let (number, parent, flags) = (record.number, record.parent as u64, record.flags);
        if flags & flag::VANISHED != 0 {
            self.vanished += 1;
            *self.pending.get_mut(&parent).expect("a known parent") -= 1;
            return;
        }
        let path = match self.paths.get(&number) {
            Some(path) => {
                assert!(record.name.is_empty(), "a directory is named twice");
                path.clone()
            }
            None => {
                let mut path = Vec::new();
                if record.parent >= 0 {
                    path.clone_from(&self.paths[&parent]); // a directory comes before its entries
                    path.push(b'/');
                    let is_pending = flags & flag::ELSEWHERE == 0;
                    *self.pending.entry(parent).or_default() -= i64::from(is_pending);
                }
                path.extend_from_slice(&record.name);
                assert!(!self.directories.contains_key(&path), "emitted twice");
                self.paths.insert(number, path.clone());
                path
            }
        };
        *self.pending.entry(number).or_default() += record.pending;
        let totals = self.directories.entry(path).or_default();
        let kinds = [
            record.subdirectories,
            record.files,
            record.symlinks,
            record.other,
        ];
        add(&mut totals.entries, kinds.map(i128::from));
        let bytes = [record.apparent_bytes, record.allocated_bytes];
        add(&mut totals.bytes, bytes.map(i128::from));
        let own = [record.own_bytes, record.own_allocated_bytes];
        add(&mut totals.own, own.map(i128::from));
        totals.date(record.oldest_s.into());
        totals.date(record.newest_s.into());
        let names = [record.name_bytes, record.record_bytes, 0];
        add(&mut totals.names, names.map(i128::from));
        totals.names[2] = totals.names[2].max(record.longest_name.into());
        totals.flags |= flags;
    }

    /// Panics if a record of a directory is missing.
    pub fn assert_nothing_pending(&self) {
        assert!(self.has_ended);
        for (number, pending) in &self.pending {
            let path = self.paths[number].escape_ascii();
            assert_eq!(*pending, 0, "{path} misses records");
        }
    }

    pub fn total(&self, kind: usize) -> i128 {
        self.directories
            .values()
            .map(|totals| totals.entries[kind])
            .sum()
    }

    pub fn flagged(&self, flag: u32) -> Vec<&[u8]> {
        let flagged = self
            .directories
            .iter()
            .filter(|(_, totals)| totals.flags & flag != 0);
        flagged.map(|(path, _)| path.as_slice()).collect()
    }
}

impl DirTotals {
    fn date(&mut self, date_s: i128) {
        if date_s != 0 {
            let [oldest_s, newest_s] = self.dates_s;
            let oldest_s = if oldest_s == 0 {
                date_s
            } else {
                oldest_s.min(date_s)
            };
            self.dates_s = [oldest_s, newest_s.max(date_s)];
        }
    }
}

fn add<const N: usize>(sums: &mut [i128; N], more: [i128; N]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

struct TestSink<F>(F);

impl<F: FnMut(&[u8])> Write for TestSink<F> {
    fn write(&mut self, whole: &[u8]) -> io::Result<usize> {
        let (length, message) = whole.split_at(4);
        assert_eq!(length, (message.len() as u32).to_le_bytes());
        (self.0)(message);
        Ok(whole.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Surveys to the end. `meanwhile` gets the sums after each message.
pub fn run_survey(
    args: Args,
    limits: Limits,
    mut meanwhile: impl FnMut(&Collected) + Send + 'static,
) -> Result<Collected, String> {
    let collected = Arc::new(Mutex::new(Collected::default()));
    let shared = Arc::clone(&collected);
    let sink = TestSink(move |message: &[u8]| {
        let mut collected = shared.lock().expect("no test has failed in it");
        collected.add_message(message);
        meanwhile(&collected);
    });
    super::survey(args, Output::new(Box::new(sink), false), limits)?;
    let collected = std::mem::take(&mut *collected.lock().expect("no test has failed in it"));
    collected.assert_nothing_pending();
    Ok(collected)
}

/// Surveys with `read_dir` and `lstat`.
pub fn naive_survey(root: &Path) -> Collected {
    let mut collected = Collected::default();
    let mut pending = vec![root.to_path_buf()];
    while let Some(path) = pending.pop() {
        let directory = path.as_os_str().as_bytes().to_vec();
        let own = fs::symlink_metadata(&path).expect("a status");
        let mut totals = DirTotals {
            own: [own.size().into(), (own.blocks() * 512).into()],
            ..DirTotals::default()
        };
        for entry in fs::read_dir(&path).expect("a directory") {
            let entry = entry.expect("a name");
            let status = entry.metadata().expect("a status");
            add_expected(
                &mut totals,
                &mut collected,
                &directory,
                &entry.file_name(),
                &status,
            );
            if status.is_dir() {
                pending.push(entry.path());
            }
        }
        collected.directories.insert(directory, totals);
    }
    collected.links.sort();
    collected
}

fn add_expected(
    totals: &mut DirTotals,
    collected: &mut Collected,
    directory: &[u8],
    name: &OsStr,
    status: &Metadata,
) {
    let length = name.len() as i128;
    let kind = index(status);
    totals.entries[kind] += 1;
    totals.flags |= name_flags(name.as_bytes());
    let is_directory = status.is_dir();
    let name_bytes = if is_directory { 0 } else { length };
    add(
        &mut totals.names,
        [name_bytes, (20 + length + 7) / 8 * 8, 0],
    );
    totals.names[2] = totals.names[2].max(length);
    if is_directory {
        return;
    }
    totals.date(i128::from(status.mtime()).max(1));
    if status.nlink() > 1 {
        let numbers = [status.dev(), status.ino(), status.nlink(), kind as u64 - 1];
        collected
            .links
            .push((directory.to_vec(), numbers.map(i128::from)));
    } else {
        let sizes = [status.size(), status.blocks() * 512];
        add(&mut totals.bytes, sizes.map(i128::from));
    }
}

fn index(status: &Metadata) -> usize {
    let kind = status.file_type();
    let is_other = kind.is_fifo() || kind.is_socket() || kind.is_char_device();
    [kind.is_dir(), kind.is_file(), kind.is_symlink(), is_other]
        .iter()
        .position(|is_kind| *is_kind)
        .expect("a known kind")
}

/// A walker that panics in a test must not block the others. The program aborts on a panic.
impl Drop for Walker<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.context.queue.close();
        }
    }
}
