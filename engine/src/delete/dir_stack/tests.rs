//! Names are taken once, whatever is given away meanwhile.

use std::collections::VecDeque;
use std::ffi::CString;
use std::fs::File;
use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::delete::shared_dir::Target;

const KNOWN: Known = Known {
    identity: Identity {
        device: 1,
        inode: 2,
    },
    birth: 0,
};

fn anything_open() -> OwnedFd {
    File::open("/").unwrap().into()
}

fn begun(file_system: FileSystem) -> Walk {
    let target = Target {
        path: b"target".to_vec(),
        name: CString::default(),
        holder: Mutex::default(),
        file_system,
    };
    let directory = Directory::new(Place::Target(target), KNOWN);
    Walk::begin(directory, anything_open(), usize::MAX)
}

/// What waits in a level, besides its own name.
type Expected = (String, VecDeque<String>);

fn read(walk: &mut Walk, level: &mut Expected, number: u8, made: &mut Vec<String>) {
    walk.begin_names();
    for _ in 0..number {
        let name = format!("{}-{}", "x".repeat(made.len() % 7), made.len());
        walk.add_name(&CString::new(name.as_str()).unwrap());
        level.1.push_back(name.clone());
        made.push(name);
    }
}

/// Gives half of what waits highest up away, as `give_directories` does.
fn give(walk: &mut Walk, expected: &mut [Expected]) -> Vec<String> {
    let Some(index) = expected.iter().position(|level| !level.1.is_empty()) else {
        return Vec::new();
    };
    let given = walk.levels[index].waiting.div_ceil(2);
    let from = walk.levels[index].first;
    let to = (0..given).fold(from, |at, _| walk.names.behind(at));
    let mut stack = NameStack::default();
    stack.append(&walk.names.copy(from, to));
    walk.levels[index].first = to;
    walk.levels[index].waiting -= given;
    let names: Vec<String> = expected[index].1.drain(..given as usize).collect();
    let mut at = 0;
    for name in &names {
        assert_eq!(stack.name(at).to_str().unwrap(), name);
        at = stack.behind(at);
    }
    assert_eq!(at, stack.end());
    names
}

proptest! {
    #[test]
    fn every_name_is_taken_once_or_given_once(
        has_parts: bool,
        script in proptest::collection::vec((0u8..4, 0u8..6), 0..300),
    ) {
        let file_system = if has_parts { FileSystem::XFS } else { FileSystem::EXT };
        let mut walk = begun(file_system);
        let (mut made, mut done) = (Vec::new(), Vec::new());
        let mut expected: Vec<Expected> = vec![("target".into(), VecDeque::new())];
        read(&mut walk, &mut expected[0], 5, &mut made);
        let mut is_first_next = vec![false];
        for (act, number) in script.into_iter().chain(std::iter::repeat((0, 0))) {
            let Some((_, waiting)) = expected.last_mut() else {
                break;
            };
            if act == 3 {
                done.append(&mut give(&mut walk, &mut expected));
                continue;
            }
            if waiting.is_empty() {
                let (level, _) = walk.leave();
                walk.forget_level(&level);
                expected.pop();
                is_first_next.pop();
                continue;
            }
            let is_first = is_first_next.last_mut().unwrap();
            let name = if *is_first { waiting.pop_front() } else { waiting.pop_back() };
            *is_first = has_parts && !*is_first;
            let at = walk.next_name();
            let name = name.unwrap();
            prop_assert_eq!(walk.names.name(at).to_str().unwrap(), name.as_str());
            done.push(name.clone());
            if act == 0 {
                walk.forget_name(at);
                continue;
            }
            walk.add_level(at, &KNOWN, anything_open());
            expected.push((name, VecDeque::new()));
            is_first_next.push(false);
            read(&mut walk, expected.last_mut().unwrap(), number, &mut made);
            let names: Vec<&str> = expected.iter().map(|level| level.0.as_str()).collect();
            let path = walk.path(walk.levels.len() - 1);
            prop_assert_eq!(path, names.join("/").into_bytes());
        }
        prop_assert_eq!(walk.names.bytes(), 0);
        made.sort();
        done.sort();
        prop_assert_eq!(made, done);
    }
}

#[test]
fn a_level_is_small() {
    assert_eq!(std::mem::size_of::<Level>(), 40); // memory of a chain of a million
}
