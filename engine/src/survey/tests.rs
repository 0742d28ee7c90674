//! Surveys of real trees, against a naive walk, and of trees that change meanwhile.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use rustix::fs::{mkdirat, mknodat, openat, FileType, Mode, OFlags, CWD};
use tempfile::TempDir;

use super::args::Request;
use super::context::Limits;
use super::records::flag;
use super::testing::{naive, surveyed, Told, NAME_FLAGS};
use crate::filters::Filters;
use crate::identity::DevIno;

#[derive(Clone, Debug)]
enum Node {
    File(u16),
    Symlink,
    Fifo,
    /// A further name of one file that lies outside.
    Link,
    Directory(BTreeMap<Vec<u8>, Node>),
}

fn names() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..12)
        .prop_map(|mut name| {
            for byte in &mut name {
                if matches!(*byte, 0 | b'/') {
                    *byte = b'-';
                }
            }
            name
        })
        .prop_filter("no dots", |name| name != b"." && name != b"..")
}

fn trees() -> impl Strategy<Value = BTreeMap<Vec<u8>, Node>> {
    let leaf = prop_oneof![
        any::<u16>().prop_map(Node::File),
        Just(Node::Symlink),
        Just(Node::Fifo),
        Just(Node::Link),
    ];
    let node = leaf.prop_recursive(5, 60, 6, |below| {
        prop::collection::btree_map(names(), below, 0..6).prop_map(Node::Directory)
    });
    prop::collection::btree_map(names(), node, 0..8)
}

fn grow(at: &Path, tree: &BTreeMap<Vec<u8>, Node>, outside: &Path) {
    for (name, node) in tree {
        let path = at.join(OsStr::from_bytes(name));
        match node {
            Node::File(bytes) => fs::write(&path, vec![b'x'; usize::from(*bytes)]).unwrap(),
            Node::Symlink => symlink(at, &path).unwrap(),
            Node::Fifo => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap(),
            Node::Link => fs::hard_link(outside, &path).unwrap(),
            Node::Directory(below) => {
                fs::create_dir(&path).unwrap();
                grow(&path, below, outside);
            }
        }
    }
}

/// A place for a tree, and its root in there.
fn place() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("root");
    fs::create_dir(&root).unwrap();
    (place, root)
}

fn asked(root: &Path, threads: usize) -> Request {
    Request {
        threads: Some(threads),
        roots: vec![root.to_path_buf()],
        ..Request::default()
    }
}

fn told(root: &Path, threads: usize, limits: Limits) -> Told {
    let mut told = surveyed(asked(root, threads), limits, |_| ()).unwrap();
    told.links.sort();
    told
}

/// Everything a little at a time, so that small trees come to all that large ones do.
fn small(open: usize, waiting_bytes: usize) -> Limits {
    Limits {
        buffer_bytes: 600,
        names_given: 1,
        waiting_bytes,
        open,
        pieces_told: 1,
        tell_every: Duration::ZERO,
    }
}

fn assert_naive(told: &Told, root: &Path) {
    let slow = naive(root);
    let known = told.directories.iter().map(|(path, facts)| {
        let mut facts = facts.clone();
        facts.flags &= NAME_FLAGS;
        (path.clone(), facts)
    });
    assert_eq!(known.collect::<BTreeMap<_, _>>(), slow.directories);
    assert_eq!(told.links, slow.links);
    assert_eq!(told.vanished, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_sum_is_that_of_a_naive_walk(
        tree in trees(), threads in 1_usize..4, open in 1_usize..4, waiting_bytes in 1_usize..40,
    ) {
        let (place, root) = place();
        let outside = place.path().join("outside");
        fs::write(&outside, [b'x'; 9_000]).unwrap();
        grow(&root, &tree, &outside);
        assert_naive(&told(&root, threads, small(open, waiting_bytes)), &root);
        assert_naive(&told(&root, threads, Limits::default()), &root);
    }
}

#[test]
fn a_large_directory_is_looked_at_by_several() {
    let (_place, root) = place();
    for number in 0..3_000 {
        File::create(root.join(format!("file-{number}"))).unwrap();
        if number % 10 == 0 {
            let directory = root.join(format!("directory-{number}"));
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("file"), b"x").unwrap();
        }
    }
    for threads in [1, 2, 5] {
        let told = told(&root, threads, small(2, 100));
        assert_naive(&told, &root);
        assert!(told.messages > 100);
    }
}

/// Makes a chain in which every directory has two siblings that wait for their turn.
fn comb(root: &Path, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut directory = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        for name in ["a", "m", "z"] {
            mkdirat(&directory, name, Mode::RWXU).unwrap();
        }
        directory = openat(&directory, "m", flags, Mode::empty()).unwrap();
    }
}

fn remove_chain(root: &Path) {
    let status = std::process::Command::new("rm")
        .arg("-rf")
        .arg(root)
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn the_way_back_is_found_with_few_descriptors() {
    let (_place, root) = place();
    comb(&root, 2_500); // deeper than any path
    for (threads, open) in [(1, 1), (1, 64), (3, 2)] {
        let limits = Limits {
            open,
            ..Limits::default()
        };
        let told = told(&root, threads, limits);
        assert_eq!(told.directories.len(), 1 + 3 * 2_500);
        assert_eq!(told.total(0), 3 * 2_500);
        assert!(told.flagged(flag::UNREADABLE).is_empty());
    }
    remove_chain(&root);
}

/// Makes directories `l` and `r` in each other.
fn fork(root: &Path, levels: usize) {
    if levels > 0 {
        for name in ["l", "r"] {
            fs::create_dir(root.join(name)).unwrap();
            fork(&root.join(name), levels - 1);
        }
    }
}

#[test]
fn a_directory_that_is_moved_leads_nowhere_else() {
    // Given a tree of which two directories in which the walker stands are moved away
    let (place, root) = place();
    fork(&root, 4);
    let elsewhere = place.path().join("elsewhere");
    for name in ["l", "r"] {
        fs::create_dir_all(elsewhere.join(name).join("trap")).unwrap();
    }
    let (top, mut has_moved) = (root.clone(), false);
    let meanwhile = move |told: &Told| {
        let levels = |path: &&Vec<u8>| path.len() - top.as_os_str().len();
        let leaf = told.directories.keys().find(|path| levels(path) == 8);
        if let (Some(leaf), false) = (leaf, has_moved) {
            let first = Path::new(OsStr::from_bytes(&leaf[..leaf.len() - 6]));
            let second = Path::new(OsStr::from_bytes(&leaf[..leaf.len() - 4]));
            fs::rename(second, elsewhere.join("moved")).unwrap();
            fs::rename(first, elsewhere.join("first")).unwrap();
            has_moved = true;
        }
    };
    // When it comes back with one descriptor on its stack
    let limits = Limits {
        open: 1,
        ..small(1, 1 << 20)
    };
    let told = surveyed(asked(&root, 1), limits, meanwhile).unwrap();
    // Then what waited there was not read, and the rest is counted
    assert_eq!(told.flagged(flag::UNREADABLE).len(), 1);
    assert_eq!(told.directories.len(), 31 - 6);
    assert_eq!(told.vanished, 0);
}

#[test]
fn what_vanishes_before_its_turn_is_told() {
    let (_place, root) = place();
    for name in ["one", "other"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    let (top, mut is_done) = (root.clone(), false);
    let meanwhile = move |told: &Told| {
        if !is_done && !told.directories.is_empty() {
            for name in ["one", "other"] {
                fs::remove_dir(top.join(name)).unwrap();
                symlink("/", top.join(name)).unwrap();
            }
            is_done = true;
        }
    };
    let limits = Limits {
        waiting_bytes: 1 << 20,
        ..small(1, 1 << 20)
    };
    let told = surveyed(asked(&root, 1), limits, meanwhile).unwrap();
    assert_eq!((told.directories.len(), told.vanished), (1, 2));
}

#[test]
fn filters_count_besides() {
    let (place, root) = place();
    fs::write(root.join("a.log"), [b'x'; 5_000]).unwrap();
    fs::write(root.join("b.log"), [b'x'; 10]).unwrap();
    fs::write(root.join("c"), [b'x'; 5_000]).unwrap();
    fs::create_dir(root.join("d.log")).unwrap();
    symlink("x", root.join("e.log")).unwrap();
    fs::hard_link(root.join("a.log"), place.path().join("outside")).unwrap();
    let allocated = i128::from(root.join("b.log").metadata().unwrap().blocks() * 512);
    let link = i128::from(root.join("e.log").symlink_metadata().unwrap().blocks() * 512);
    let mut request = asked(&root, 1);
    request.filters = Filters {
        name_glob: Some(c"*.log".to_owned()),
        ..Filters::default()
    };
    let told = surveyed(request, Limits::default(), |_| ()).unwrap();
    assert_eq!(told.matched, [1, 1, 0, 11, allocated + link]);
    assert_eq!(told.links.len(), 1); // whose match the collector counts

    let mut request = asked(&root, 1);
    request.filters.min_size_bytes = Some(5_000);
    let told = surveyed(request, Limits::default(), |_| ()).unwrap();
    assert_eq!(told.matched[..4], [1, 0, 0, 5_000]);
}

#[test]
fn large_files_are_told_one_by_one() {
    let (_place, root) = place();
    for (name, bytes) in [("large", 64 << 20), ("linked", 1 << 40), ("small", 1 << 20)] {
        File::create(root.join(name))
            .unwrap()
            .set_len(bytes)
            .unwrap();
    }
    fs::hard_link(root.join("linked"), root.join("linked again")).unwrap();
    let mut told = told(&root, 1, Limits::default());
    told.big_files.sort();
    let expected: [(&[u8], bool); 3] = [
        (b"large", false),
        (b"linked", true),
        (b"linked again", true),
    ];
    assert_eq!(
        told.big_files,
        expected.map(|(name, is)| (name.to_vec(), is))
    );
    assert_naive(&told, &root);
}

#[test]
fn names_alone_tell_how_many() {
    let (_place, root) = place();
    fork(&root, 3);
    fs::write(root.join("l/file.o"), b"x").unwrap();
    fs::write(root.join("r/file"), b"x").unwrap();
    symlink("x", root.join("r/link.o")).unwrap();
    let mut request = asked(&root, 2);
    request.names_only = true;
    request.filters.name_glob = Some(c"*.o".to_owned());
    let told = surveyed(request, Limits::default(), |_| ()).unwrap();
    let slow = naive(&root);
    for (path, facts) in &slow.directories {
        let known = &told.directories[path];
        assert_eq!(known.entries, facts.entries);
        assert_eq!((known.names, known.own), (facts.names, facts.own));
        assert_eq!((known.bytes, known.dates_s), ([0, 0], [0, 0]));
    }
    assert_eq!(told.matched, [1, 1, 0, 0, 0]);
}

#[test]
fn several_directories_are_counted_together() {
    let (_place, root) = place();
    fork(&root, 4);
    let roots = ["l/l", "l/r", "r"].map(|name| root.join(name));
    let mut request = asked(&root, 3);
    request.roots = roots.to_vec();
    request.pins = roots
        .iter()
        .map(|root| root.metadata().unwrap())
        .map(|status| DevIno {
            device: status.dev(),
            inode: status.ino(),
        })
        .collect();
    let told = surveyed(request, small(1, 1), |_| ()).unwrap();
    assert_eq!(told.directories.len(), 31 - 2);
}

#[test]
fn a_root_that_is_not_the_one_meant_is_refused() {
    let (_place, root) = place();
    let mut request = asked(&root, 1);
    request.pins = vec![DevIno {
        device: 1,
        inode: 1,
    }];
    let why = surveyed(request, Limits::default(), |_| ()).unwrap_err();
    assert!(why.contains("another directory"), "{why}");

    symlink(&root, root.with_extension("link")).unwrap();
    for name in ["missing", "root.link"] {
        let other = root.with_file_name(name);
        let why = surveyed(asked(&other, 1), Limits::default(), |_| ()).unwrap_err();
        assert!(why.contains("cannot be read: "), "{why}");
        assert!(!why.contains("os error"), "{why}");
    }
}
