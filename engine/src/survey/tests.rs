//! Surveys of trees, compared with a naive walk, and of trees that change meanwhile.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use proptest::prelude::*;
use rustix::fs::{mkdirat, mknodat, openat, FileType, Mode, OFlags, CWD};
use tempfile::TempDir;

use super::args::Args;
use super::histogram::Classes;
use super::records::flag;
use super::testing::{naive_survey, run_survey, Collected, NAME_FLAGS};
use super::Limits;
use crate::filters::Filters;
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

fn matched_in(collected: &Collected, directory: &Path) -> [i128; 5] {
    collected.matched[directory.as_os_str().as_bytes()]
}

#[test]
fn filtered_entries_are_counted_separately() {
    let (scratch, root) = scratch_root();
    fs::write(root.join("a.log"), [b'x'; 5_000]).unwrap();
    fs::write(root.join("b.log"), [b'x'; 10]).unwrap();
    fs::write(root.join("c"), [b'x'; 5_000]).unwrap();
    fs::create_dir(root.join("d.log")).unwrap();
    fs::write(root.join("d.log/f.log"), b"xyz").unwrap();
    symlink("x", root.join("e.log")).unwrap();
    fs::hard_link(root.join("a.log"), scratch.path().join("outside")).unwrap();
    let allocated = i128::from(root.join("b.log").metadata().unwrap().blocks() * 512);
    let link = i128::from(root.join("e.log").symlink_metadata().unwrap().blocks() * 512);
    let mut args = args_for(&root, 1);
    args.filters = Filters {
        name_glob: Some(c"*.log".to_owned()),
        ..Filters::default()
    };
    let collected = run_survey(args, Limits::default(), |_| ()).unwrap();
    assert_eq!(
        matched_in(&collected, &root),
        [1, 1, 0, 11, allocated + link]
    );
    let below = matched_in(&collected, &root.join("d.log"));
    assert_eq!(below[..4], [1, 0, 0, 3]);
    assert_eq!(collected.links.len(), 1); // a match of links is counted by the collector

    let mut args = args_for(&root, 1);
    args.filters.min_size_bytes = Some(5_000);
    let collected = run_survey(args, Limits::default(), |_| ()).unwrap();
    assert_eq!(matched_in(&collected, &root)[..4], [1, 0, 0, 5_000]);

    let mut args = args_for(&root, 1);
    args.filters.size_below_bytes = Some(11);
    let collected = run_survey(args, Limits::default(), |_| ()).unwrap();
    assert_eq!(matched_in(&collected, &root)[..4], [1, 0, 0, 10]); // no symbolic link

    let mut args = args_for(&root, 1);
    args.filters.modified_after_s = Some(1_000);
    File::open(root.join("c"))
        .unwrap()
        .set_modified(UNIX_EPOCH + Duration::from_secs(1_000))
        .unwrap();
    let collected = run_survey(args, Limits::default(), |_| ()).unwrap();
    assert_eq!(matched_in(&collected, &root)[..3], [1, 1, 0]);
}

#[test]
fn histograms_count_what_the_filters_select() {
    let (scratch, root) = scratch_root();
    for (name, bytes, age_s) in [("a.log", 0, 10), ("b.log", 5_000, 900), ("c", 70, 900)] {
        fs::write(root.join(name), vec![b'x'; bytes]).unwrap();
        let file = File::open(root.join(name)).unwrap();
        (file.set_modified(UNIX_EPOCH + Duration::from_secs(age_s))).unwrap();
    }
    fs::create_dir(root.join("d")).unwrap();
    fs::hard_link(root.join("b.log"), scratch.path().join("outside")).unwrap();
    let allocated = root.join("c").metadata().unwrap().blocks() * 512;
    let mut args = args_for(&root, 1);
    args.classes = Classes::parse("100:0,4999");
    let in_class = |collected: &Collected| {
        let path = root.as_os_str().as_bytes();
        (0..5)
            .map(|class| collected.histograms.get(&(path.to_vec(), class)).copied())
            .map(Option::unwrap_or_default)
            .collect::<Vec<_>>()
    };
    let collected = run_survey(args, Limits::default(), |_| ()).unwrap();
    let expected = [[1, 0], [2, allocated], [1, 0], [1, allocated], [1, 0]];
    assert_eq!(in_class(&collected), expected);

    let mut args = args_for(&root, 1);
    args.classes = Classes::parse("100:0,4999");
    args.filters.name_glob = Some(c"*.log".to_owned());
    let collected = run_survey(args, Limits::default(), |_| ()).unwrap();
    assert_eq!(
        in_class(&collected),
        [[1, 0], [1, 0], [1, 0], [0, 0], [1, 0]]
    );

    let collected = run_survey(args_for(&root, 1), Limits::default(), |_| ()).unwrap();
    assert!(collected.histograms.is_empty() && collected.labels.is_empty());
}

#[test]
fn suffixes_and_other_owners_are_counted() {
    let (scratch, root) = scratch_root();
    let directory = root.join("d");
    fs::create_dir(&directory).unwrap();
    for name in ["a.log", "b.log", "c.gz", "d"] {
        fs::write(directory.join(name), "x").unwrap();
    }
    fs::hard_link(directory.join("c.gz"), scratch.path().join("outside")).unwrap();
    let allocated = directory.join("d").metadata().unwrap().blocks() * 512;
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        std::os::unix::fs::chown(directory.join("b.log"), Some(7), None).unwrap();
    }
    let mut args = args_for(&root, 2);
    args.classes = Classes::parse("100:0,4999");
    let collected = run_survey(args, Limits::default(), |_| ()).unwrap();
    let owner = root.metadata().unwrap().uid();
    assert_eq!(collected.labels[&16], format!("uid {owner}"));
    let path = directory.as_os_str().as_bytes();
    let counted = |words: &str| {
        let (class, _) = collected.labels.iter().find(|label| label.1 == words)?;
        collected.histograms.get(&(path.to_vec(), *class)).copied()
    };
    assert_eq!(counted(".log"), Some([2, 2 * allocated]));
    assert_eq!(counted(".gz"), Some([1, 0])); // its link record has the bytes
    assert_eq!(counted(&format!("uid {owner}")), None);
    assert_eq!(counted("uid 7"), is_root.then_some([1, allocated]));
}

#[test]
fn large_files_have_their_own_records() {
    let (_scratch, root) = scratch_root();
    for (name, bytes) in [("large", 64 << 20), ("linked", 1 << 40), ("small", 1 << 20)] {
        File::create(root.join(name))
            .unwrap()
            .set_len(bytes)
            .unwrap();
    }
    fs::hard_link(root.join("linked"), root.join("linked again")).unwrap();
    let mut collected = survey_root(&root, 1, Limits::default());
    collected.big_files.sort();
    let expected: [(&[u8], bool); 3] = [
        (b"large", false),
        (b"linked", true),
        (b"linked again", true),
    ];
    assert_eq!(
        collected.big_files,
        expected.map(|(name, is_linked)| (name.to_vec(), is_linked))
    );
    assert_naive(&collected, &root);
}

#[test]
fn sums_above_64_bits_are_split_among_records() {
    let scratch = tempfile::tempdir_in("/dev/shm").unwrap(); // tmpfs has the largest files
    let root = scratch.path();
    let mut args = args_for(root, 1);
    for number in 0..5 {
        let sparse = File::create(root.join(number.to_string())).unwrap();
        sparse.set_len(i64::MAX as u64).unwrap();
    }
    args.filters.min_size_bytes = Some(1);
    let collected = run_survey(args, Limits::default(), |_| ()).unwrap();
    assert_eq!(matched_in(&collected, root)[3], 5 * i128::from(i64::MAX));
    assert_naive(&collected, root);
}

#[test]
fn names_only_survey_counts_entries_without_stat() {
    let (_scratch, root) = scratch_root();
    create_binary_tree(&root, 3);
    fs::write(root.join("l/file.o"), b"x").unwrap();
    fs::write(root.join("r/file"), b"x").unwrap();
    symlink("x", root.join("r/link.o")).unwrap();
    let mut args = args_for(&root, 2);
    args.names_only = true;
    args.filters.name_glob = Some(c"*.o".to_owned());
    let collected = run_survey(args, Limits::default(), |_| ()).unwrap();
    let expected = naive_survey(&root);
    for (path, totals) in &expected.directories {
        let actual = &collected.directories[path];
        assert_eq!(actual.entries, totals.entries);
        assert_eq!((actual.names, actual.own), (totals.names, totals.own));
        assert_eq!((actual.bytes, actual.dates_s), ([0, 0], [0, 0]));
    }
    assert_eq!(matched_in(&collected, &root.join("l"))[..3], [1, 0, 0]);
    assert_eq!(matched_in(&collected, &root.join("r"))[..3], [0, 1, 0]);
}

#[test]
fn several_roots_are_summed_up() {
    let (_scratch, root) = scratch_root();
    create_binary_tree(&root, 4);
    let roots = ["l/l", "l/r", "r"].map(|name| root.join(name));
    let mut args = args_for(&root, 3);
    args.roots = roots.to_vec();
    args.pins = roots
        .iter()
        .map(|root| root.metadata().unwrap())
        .map(|status| DevIno {
            device: status.dev(),
            inode: status.ino(),
        })
        .collect();
    let collected = run_survey(args, small_limits(1, 1), |_| ()).unwrap();
    assert_eq!(collected.directories.len(), 31 - 2);
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
