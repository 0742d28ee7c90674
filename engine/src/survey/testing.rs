//! What the tests of the survey hear, and what a naive walk says.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::args::Request;
use super::context::Limits;
use super::names::flags_of;
use super::output::Output;
use super::records::flag;
use super::walker::Walker;

/// A value that marshal has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    None,
    Bool(bool),
    Int(i128),
    Bytes(Vec<u8>),
    Many(Vec<Value>),
}

impl Value {
    pub fn decode(mut rest: &[u8]) -> Self {
        let value = decode(&mut rest);
        assert!(rest.is_empty(), "something behind the value");
        value
    }

    pub fn int(&self) -> i128 {
        match self {
            Self::Int(value) => *value,
            other => panic!("no number: {other:?}"),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(value) => value,
            other => panic!("no bytes: {other:?}"),
        }
    }

    pub fn many(&self) -> &[Value] {
        match self {
            Self::Many(values) => values,
            other => panic!("no list: {other:?}"),
        }
    }
}

fn decode(rest: &mut &[u8]) -> Value {
    let (tag, behind) = rest.split_first().expect("a tag");
    *rest = behind;
    match tag {
        b'N' => Value::None,
        b'T' => Value::Bool(true),
        b'F' => Value::Bool(false),
        b'i' => Value::Int(number(rest).into()),
        b'l' => {
            let digits = number(rest);
            let mut value: i128 = 0;
            for at in 0..digits.unsigned_abs() {
                let (digit, behind) = rest.split_at(2);
                *rest = behind;
                value |= i128::from(u16::from_le_bytes([digit[0], digit[1]])) << (15 * at);
            }
            Value::Int(value * i128::from(digits.signum()))
        }
        b's' => {
            let length = number(rest) as usize;
            let (bytes, behind) = rest.split_at(length);
            *rest = behind;
            Value::Bytes(bytes.to_vec())
        }
        b'[' => {
            let length = number(rest);
            Value::Many((0..length).map(|_| decode(rest)).collect())
        }
        b')' => {
            let (length, behind) = rest.split_first().expect("a length");
            *rest = behind;
            Value::Many((0..*length).map(|_| decode(rest)).collect())
        }
        tag => panic!("unknown tag {tag}"),
    }
}

fn number(rest: &mut &[u8]) -> i32 {
    let (bytes, behind) = rest.split_at(4);
    *rest = behind;
    i32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

/// What is known of one directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Subdirectories, files, symbolic links, other.
    pub entries: [i128; 4],
    /// Apparent and allocated bytes of what has one name.
    pub bytes: [i128; 2],
    /// The same of the directory itself.
    pub own: [i128; 2],
    /// Oldest and newest modification.
    pub dates_s: [i128; 2],
    /// Of the names: bytes of those that are no directories, bytes of records, the longest.
    pub names: [i128; 3],
    pub flags: u32,
}

/// Flags that a naive walk knows.
pub const NAME_FLAGS: u32 = flag::CONTROL_NAMES
    | flag::UNDECODABLE_NAMES
    | flag::DASH_NAMES
    | flag::SPACE_NAMES
    | flag::LONG_NAMES;

/// All that was told.
#[derive(Debug, Default)]
pub struct Told {
    /// By path.
    pub directories: BTreeMap<Vec<u8>, Facts>,
    /// Directory, device, inode, names, kind.
    pub links: Vec<(Vec<u8>, [i128; 4])>,
    /// Names, and whether other names are told.
    pub big_files: Vec<(Vec<u8>, bool)>,
    pub matched: [i128; 5],
    pub vanished: i128,
    pub messages: usize,
    pub has_ended: bool,
    paths: HashMap<i128, Vec<u8>>,
    pending: HashMap<i128, i128>,
}

impl Told {
    fn take(&mut self, message: &Value) {
        self.messages += 1;
        if self.messages == 1 {
            assert_eq!(message, &Value::Int(3), "the format");
            return;
        }
        assert!(!self.has_ended, "a message behind the last one");
        let [pieces, links, big_files, matched, vanished, give, is_last] = message.many() else {
            panic!("no batch: {message:?}");
        };
        pieces
            .many()
            .iter()
            .for_each(|piece| self.take_piece(piece));
        for link in links.many().iter().map(Value::many) {
            let numbers = [1, 2, 3, 6].map(|at| link[at].int());
            self.links
                .push((self.paths[&link[0].int()].clone(), numbers));
        }
        for file in big_files.many().iter().map(Value::many) {
            let is_linked = file[5].int() != 0;
            self.big_files.push((file[1].bytes().to_vec(), is_linked));
        }
        for (sum, more) in self.matched.iter_mut().zip(matched.many()) {
            *sum += more.int();
        }
        self.vanished += vanished.int();
        assert_eq!(give, &Value::None);
        self.has_ended = *is_last == Value::Bool(true);
    }

    fn take_piece(&mut self, piece: &Value) {
        let piece = piece.many();
        assert_eq!(piece.len(), 18);
        let int = |at: usize| piece[at].int();
        let (number, parent, name, flags) = (int(0), int(1), piece[2].bytes(), int(17) as u32);
        if flags & flag::VANISHED != 0 {
            self.vanished += 1;
            *self.pending.get_mut(&parent).expect("a known parent") -= 1;
            return;
        }
        let path = match self.paths.get(&number) {
            Some(path) => {
                assert!(name.is_empty(), "a directory is named twice");
                path.clone()
            }
            None => {
                let mut path = Vec::new();
                if parent >= 0 {
                    path.clone_from(&self.paths[&parent]); // told before what is in it
                    path.push(b'/');
                    let is_waited_for = flags & flag::ELSEWHERE == 0;
                    *self.pending.entry(parent).or_default() -= i128::from(is_waited_for);
                }
                path.extend_from_slice(name);
                assert!(!self.directories.contains_key(&path), "told twice");
                self.paths.insert(number, path.clone());
                path
            }
        };
        *self.pending.entry(number).or_default() += int(16);
        let facts = self.directories.entry(path).or_default();
        add(&mut facts.entries, [3, 4, 5, 6].map(int));
        add(&mut facts.bytes, [7, 8].map(int));
        add(&mut facts.own, [9, 10].map(int));
        facts.date(int(11));
        facts.date(int(12));
        add(
            &mut facts.names,
            [13, 14, 0].map(|at| if at > 0 { int(at) } else { 0 }),
        );
        facts.names[2] = facts.names[2].max(int(15));
        facts.flags |= flags;
    }

    /// Fails unless each directory knows that nothing of it is still to come.
    pub fn assert_settled(&self) {
        assert!(self.has_ended);
        for (number, pending) in &self.pending {
            let path = self.paths[number].escape_ascii();
            assert_eq!(*pending, 0, "{path} waits for pieces");
        }
    }

    pub fn total(&self, kind: usize) -> i128 {
        self.directories.values().map(|one| one.entries[kind]).sum()
    }

    pub fn flagged(&self, flag: u32) -> Vec<&[u8]> {
        let flagged = self
            .directories
            .iter()
            .filter(|(_, one)| one.flags & flag != 0);
        flagged.map(|(path, _)| path.as_slice()).collect()
    }
}

impl Facts {
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

struct Ear<F>(F);

impl<F: FnMut(&Value)> Write for Ear<F> {
    fn write(&mut self, whole: &[u8]) -> io::Result<usize> {
        let (length, message) = whole.split_at(4);
        assert_eq!(length, (message.len() as u32).to_le_bytes());
        (self.0)(&Value::decode(message));
        Ok(whole.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Surveys to the end; `meanwhile` sees all that is told so far whenever something is.
pub fn surveyed(
    request: Request,
    limits: Limits,
    mut meanwhile: impl FnMut(&Told) + Send + 'static,
) -> Result<Told, String> {
    let told = Arc::new(Mutex::new(Told::default()));
    let shared = Arc::clone(&told);
    let output = Output::new(Box::new(Ear(move |message: &Value| {
        let mut told = shared.lock().expect("no test has failed in it");
        told.take(message);
        meanwhile(&told);
    })));
    super::survey(request, output, limits)?;
    let told = std::mem::take(&mut *told.lock().expect("no test has failed in it"));
    told.assert_settled();
    Ok(told)
}

/// What `read_dir` and `lstat` say about each directory, and the names of linked inodes.
pub fn naive(root: &Path) -> Told {
    let mut told = Told::default();
    let mut waiting = vec![root.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let directory = path.as_os_str().as_bytes().to_vec();
        let own = fs::symlink_metadata(&path).expect("a status");
        let mut facts = Facts {
            own: [own.size().into(), (own.blocks() * 512).into()],
            ..Facts::default()
        };
        for entry in fs::read_dir(&path).expect("a directory") {
            let entry = entry.expect("a name");
            let status = entry.metadata().expect("a status");
            note(
                &mut facts,
                &mut told,
                &directory,
                &entry.file_name(),
                &status,
            );
            if status.is_dir() {
                waiting.push(entry.path());
            }
        }
        told.directories.insert(directory, facts);
    }
    told.links.sort();
    told
}

fn note(facts: &mut Facts, told: &mut Told, directory: &[u8], name: &OsStr, status: &Metadata) {
    let length = name.len() as i128;
    let kind = index(status);
    facts.entries[kind] += 1;
    facts.flags |= flags_of(name.as_bytes());
    let is_directory = status.is_dir();
    let others = if is_directory { 0 } else { length };
    add(&mut facts.names, [others, (20 + length + 7) / 8 * 8, 0]);
    facts.names[2] = facts.names[2].max(length);
    if is_directory {
        return;
    }
    facts.date(i128::from(status.mtime()).max(1));
    if status.nlink() > 1 {
        let numbers = [status.dev(), status.ino(), status.nlink(), kind as u64 - 1];
        told.links
            .push((directory.to_vec(), numbers.map(i128::from)));
    } else {
        let sizes = [status.size(), status.blocks() * 512];
        add(&mut facts.bytes, sizes.map(i128::from));
    }
}

fn index(status: &Metadata) -> usize {
    let kind = status.file_type();
    let is_other = kind.is_fifo() || kind.is_socket() || kind.is_char_device();
    [kind.is_dir(), kind.is_file(), kind.is_symlink(), is_other]
        .iter()
        .position(|is_so| *is_so)
        .expect("a known kind")
}

/// Lets the others end when one has failed; the program itself ends with the first panic.
impl Drop for Walker<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.pool.lose_walker();
        }
    }
}
