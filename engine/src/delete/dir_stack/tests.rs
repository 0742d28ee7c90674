//! Each name is taken by one worker, whatever is shared meanwhile.

use std::collections::VecDeque;
use std::ffi::CString;
use std::fs::File;
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::delete::shared_dir::Target;

const IDENTITY: DirIdentity = DirIdentity {
    dev_ino: DevIno {
        device: 1,
        inode: 2,
    },
    birth_ns: 0,
};

fn open_descriptor() -> OwnedFd {
    File::open("/").unwrap().into()
}

fn new_stack(file_system: &'static FileSystem) -> DirStack {
    let target = Target {
        path: b"target".to_vec(),
        name: CString::default(),
        parent_fd: Mutex::default(),
        file_system,
    };
    let directory = SharedDir::new(DirLocation::Target(target), IDENTITY);
    DirStack::new(directory, open_descriptor(), usize::MAX)
}

/// The name of a level, and its pending names.
type Expected = (String, VecDeque<String>);

fn read(stack: &mut DirStack, level: &mut Expected, number: u8, created: &mut Vec<String>) {
    stack.clear_names();
    for _ in 0..number {
        let name = format!("{}-{}", "x".repeat(created.len() % 7), created.len());
        stack.add_name(&CString::new(name.as_str()).unwrap());
        level.1.push_back(name.clone());
        created.push(name);
    }
}

/// Shares half of the highest pending names, as `share_subdirs` does.
fn share(stack: &mut DirStack, expected: &mut [Expected]) -> Vec<String> {
    let Some(index) = expected.iter().position(|level| !level.1.is_empty()) else {
        return Vec::new();
    };
    let shared = stack.levels[index].pending.div_ceil(2);
    let from = stack.levels[index].first_name;
    let to = (0..shared).fold(from, |at, _| stack.names.next_after(at));
    let mut copy = NameStack::default();
    copy.append(&stack.names.copy(from, to));
    stack.levels[index].first_name = to;
    stack.levels[index].pending -= shared;
    let names: Vec<String> = expected[index].1.drain(..shared as usize).collect();
    let mut at = 0;
    for name in &names {
        assert_eq!(copy.name(at).to_str().unwrap(), name);
        at = copy.next_after(at);
    }
    assert_eq!(at, copy.end());
    names
}

proptest! {
    #[test]
    fn every_name_is_taken_or_shared_once(
        has_allocation_groups: bool,
        script in proptest::collection::vec((0u8..4, 0u8..6), 0..300),
    ) {
        let file_system = FileSystem::named(if has_allocation_groups { "xfs" } else { "ext4" });
        let mut stack = new_stack(file_system);
        let (mut created, mut done) = (Vec::new(), Vec::new());
        let mut expected: Vec<Expected> = vec![("target".into(), VecDeque::new())];
        read(&mut stack, &mut expected[0], 5, &mut created);
        let mut is_first_next = vec![false];
        for (action, number) in script.into_iter().chain(std::iter::repeat((0, 0))) {
            let Some((_, pending)) = expected.last_mut() else {
                break;
            };
            if action == 3 {
                done.append(&mut share(&mut stack, &mut expected));
                continue;
            }
            if pending.is_empty() {
                let (level, _) = stack.pop();
                stack.drop_level_names(&level);
                expected.pop();
                is_first_next.pop();
                continue;
            }
            let is_first = is_first_next.last_mut().unwrap();
            let name = if *is_first { pending.pop_front() } else { pending.pop_back() };
            *is_first = has_allocation_groups && !*is_first;
            let at = stack.take_name();
            let name = name.unwrap();
            prop_assert_eq!(stack.names.name(at).to_str().unwrap(), name.as_str());
            done.push(name.clone());
            if action == 0 {
                stack.drop_name(at);
                continue;
            }
            stack.add_level(at, &IDENTITY, open_descriptor());
            expected.push((name, VecDeque::new()));
            is_first_next.push(false);
            read(&mut stack, expected.last_mut().unwrap(), number, &mut created);
            let names: Vec<&str> = expected.iter().map(|level| level.0.as_str()).collect();
            let path = stack.path(stack.levels.len() - 1);
            prop_assert_eq!(path, names.join("/").into_bytes());
        }
        prop_assert_eq!(stack.names.bytes(), 0);
        created.sort();
        done.sort();
        prop_assert_eq!(created, done);
    }
}

#[test]
fn level_takes_40_bytes() {
    assert_eq!(std::mem::size_of::<Level>(), 40); // memory of a chain of a million
}
