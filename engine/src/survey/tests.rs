//! Surveys of trees, compared with a naive walk, and of trees that change meanwhile.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use rustix::fs::{mkdirat, mknodat, openat, FileType, Mode, OFlags, CWD};
use tempfile::TempDir;

use super::args::Args;
use super::records::flag;
use super::testing::{naive_survey, run_survey, Collected, NAME_FLAGS};
use super::Limits;
use crate::identity::DevIno;

#[derive(Clone, Debug)]
enum Node {
    File(u16),
    Symlink,
    Fifo,
    /// A hard link to a file outside of the tree.
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

/// Creates a scratch directory with an empty root in it.
fn scratch_root() -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("root");
    fs::create_dir(&root).unwrap();
    (scratch, root)
}

fn args_for(root: &Path, threads: usize) -> Args {
    Args {
        threads: Some(threads),
        roots: vec![root.to_path_buf()],
        ..Args::default()
    }
}

fn survey_root(root: &Path, threads: usize, limits: Limits) -> Collected {
    let mut collected = run_survey(args_for(root, threads), limits, |_| ()).unwrap();
    collected.links.sort();
    collected
}

/// Minimal limits, with which a small tree takes the code paths of a large one.
fn small_limits(max_open: usize, max_pending_bytes: usize) -> Limits {
    Limits {
        buffer_bytes: 600,
        min_shared_names: 1,
        names_per_check: Some(1),
        max_pending_bytes,
        max_open,
        max_records: 1,
        send_interval: Duration::ZERO,
    }
}

fn assert_naive(collected: &Collected, root: &Path) {
    let expected = naive_survey(root);
    let actual = collected.directories.iter().map(|(path, totals)| {
        let mut totals = totals.clone();
        totals.flags &= NAME_FLAGS;
        (path.clone(), totals)
    });
    assert_eq!(actual.collect::<BTreeMap<_, _>>(), expected.directories);
    assert_eq!(collected.links, expected.links);
    assert_eq!(collected.vanished, 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..Default::default() })]

    #[test]
    fn sums_equal_those_of_a_naive_walk(
        tree in trees(), threads in 1_usize..4, max_open in 1_usize..4, max_pending_bytes in 1_usize..40,
    ) {
        let (scratch, root) = scratch_root();
        let outside = scratch.path().join("outside");
        fs::write(&outside, [b'x'; 9_000]).unwrap();
        grow(&root, &tree, &outside);
        assert_naive(&survey_root(&root, threads, small_limits(max_open, max_pending_bytes)), &root);
        assert_naive(&survey_root(&root, threads, Limits::default()), &root);
    }
}

#[test]
fn large_directory_is_shared_among_walkers() {
    let (_scratch, root) = scratch_root();
    for number in 0..3_000 {
        File::create(root.join(format!("file-{number}"))).unwrap();
        if number % 10 == 0 {
            let directory = root.join(format!("directory-{number}"));
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("file"), b"x").unwrap();
        }
    }
    for threads in [1, 2, 5] {
        let collected = survey_root(&root, threads, small_limits(2, 100));
        assert_naive(&collected, &root);
        assert!(collected.messages > 100);
    }
}

#[test]
fn subdirectories_are_shared_while_links_in_one_are_examined() {
    let (_scratch, root) = scratch_root();
    let linked = root.join("linked");
    fs::write(&linked, b"x").unwrap();
    for number in 0..40 {
        let directory = root.join(format!("directory-{number}"));
        fs::create_dir(&directory).unwrap();
        for name in 0..60 {
            fs::hard_link(&linked, directory.join(format!("link-{name}"))).unwrap();
        }
    }
    for _ in 0..100 {
        assert_naive(&survey_root(&root, 3, small_limits(3, 1_000)), &root);
    }
}

/// Creates a chain in which every directory has two siblings.
fn create_comb(root: &Path, levels: usize) {
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
fn deep_tree_is_surveyed_with_few_descriptors() {
    let (_scratch, root) = scratch_root();
    create_comb(&root, 2_500); // deeper than any path
    for (threads, max_open) in [(1, 1), (1, 64), (3, 2)] {
        let limits = Limits {
            max_open,
            ..Limits::default()
        };
        let collected = survey_root(&root, threads, limits);
        assert_eq!(collected.directories.len(), 1 + 3 * 2_500);
        assert_eq!(collected.total(0), 3 * 2_500);
        assert!(collected.flagged(flag::UNREADABLE).is_empty());
    }
    remove_chain(&root);
}

/// Creates a binary tree of directories `l` and `r`.
fn create_binary_tree(root: &Path, levels: usize) {
    if levels > 0 {
        for name in ["l", "r"] {
            fs::create_dir(root.join(name)).unwrap();
            create_binary_tree(&root.join(name), levels - 1);
        }
    }
}

#[test]
fn walker_does_not_follow_a_moved_directory() {
    // Two directories on the walker's path are moved out of the tree.
    let (scratch, root) = scratch_root();
    create_binary_tree(&root, 4);
    let elsewhere = scratch.path().join("elsewhere");
    for name in ["l", "r"] {
        fs::create_dir_all(elsewhere.join(name).join("trap")).unwrap();
    }
    let (top, mut has_moved) = (root.clone(), false);
    let meanwhile = move |collected: &Collected| {
        let levels = |path: &&Vec<u8>| path.len() - top.as_os_str().len();
        let leaf = collected.directories.keys().find(|path| levels(path) == 8);
        if let (Some(leaf), false) = (leaf, has_moved) {
            let first = Path::new(OsStr::from_bytes(&leaf[..leaf.len() - 6]));
            let second = Path::new(OsStr::from_bytes(&leaf[..leaf.len() - 4]));
            fs::rename(second, elsewhere.join("moved")).unwrap();
            fs::rename(first, elsewhere.join("first")).unwrap();
            has_moved = true;
        }
    };
    // With one descriptor the walker must ascend by `..`.
    let limits = Limits {
        max_open: 1,
        ..small_limits(1, 1 << 20)
    };
    let collected = run_survey(args_for(&root, 1), limits, meanwhile).unwrap();
    assert_eq!(collected.flagged(flag::UNREADABLE).len(), 1);
    assert_eq!(collected.directories.len(), 31 - 6);
    assert_eq!(collected.vanished, 0);
}

#[test]
fn vanished_directories_are_counted() {
    let (_scratch, root) = scratch_root();
    for name in ["first", "second"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    let (top, mut is_done) = (root.clone(), false);
    let meanwhile = move |collected: &Collected| {
        if !is_done && !collected.directories.is_empty() {
            for name in ["first", "second"] {
                fs::remove_dir(top.join(name)).unwrap();
                symlink("/", top.join(name)).unwrap();
            }
            is_done = true;
        }
    };
    let limits = Limits {
        max_pending_bytes: 1 << 20,
        ..small_limits(1, 1 << 20)
    };
    let collected = run_survey(args_for(&root, 1), limits, meanwhile).unwrap();
    assert_eq!((collected.directories.len(), collected.vanished), (1, 2));
}

#[test]
fn root_with_another_identity_is_refused() {
    let (_scratch, root) = scratch_root();
    let mut args = args_for(&root, 1);
    args.pins = vec![DevIno {
        device: 1,
        inode: 1,
    }];
    let error = run_survey(args, Limits::default(), |_| ()).unwrap_err();
    assert!(error.contains("another directory"), "{error}");

    symlink(&root, root.with_extension("link")).unwrap();
    for name in ["missing", "root.link"] {
        let path = root.with_file_name(name);
        let error = run_survey(args_for(&path, 1), Limits::default(), |_| ()).unwrap_err();
        assert!(error.contains("cannot be read: "), "{error}");
        assert!(!error.contains("os error"), "{error}");
    }
}
