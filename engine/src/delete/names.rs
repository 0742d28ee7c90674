//! Names in little room: a stack of directories' names, and what was read of one directory.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Names one behind the other, taken from the end; a name is stored as its length, its bytes, a
/// NUL and its length again. NAME_MAX (255) does not bind every file system, so a length has two
/// bytes.
#[derive(Default)]
pub struct NameStack {
    bytes: Vec<u8>,
}

/// The bytes a length takes, and those that a name takes besides its own.
const LENGTH: usize = 2;
const FRAME: usize = 2 * LENGTH + 1;

impl NameStack {
    pub fn push(&mut self, name: &CStr) {
        let name = name.to_bytes_with_nul();
        let length = u16::try_from(name.len() - 1).expect("getdents64 has two bytes for a length");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
    }

    /// Where the last name stands.
    pub fn last(&self) -> Option<u32> {
        let end = self.bytes.len().checked_sub(LENGTH)?;
        Some(place(self.bytes.len() - self.length(end) - FRAME))
    }

    pub fn name(&self, at: u32) -> &CStr {
        let begin = at as usize + LENGTH;
        let end = begin + self.length(at as usize) + 1;
        CStr::from_bytes_with_nul(&self.bytes[begin..end]).expect("pushed from a C string")
    }

    /// Where the name behind this one stands, or would stand.
    pub fn behind(&self, at: u32) -> u32 {
        place(at as usize + self.length(at as usize) + FRAME)
    }

    fn length(&self, at: usize) -> usize {
        usize::from(u16::from_ne_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Where the next name will stand.
    pub fn end(&self) -> u32 {
        place(self.bytes.len())
    }

    /// Forgets the name at this place and all behind it.
    pub fn cut(&mut self, at: u32) {
        self.bytes.truncate(at as usize);
    }

    /// Copies the names between two places.
    pub fn copy(&self, from: u32, to: u32) -> Box<[u8]> {
        self.bytes[from as usize..to as usize].into()
    }

    /// Appends what `copy` has returned.
    pub fn append(&mut self, copied: &[u8]) {
        self.bytes.extend_from_slice(copied);
    }
}

/// A place in so many bytes that four hold it: an overflow must end the program before it names
/// something else.
fn place(at: usize) -> u32 {
    u32::try_from(at).expect("less than 4 GiB of names are held")
}

/// A name of a batch: its inode's number, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameRef {
    pub inode: u64,
    at: u32,
}

/// Fewer files are removed as they come: their inodes share few blocks whatever the order.
const SORT_FROM: usize = 256;

/// Names that were read of one directory: those of directories, and all others.
#[derive(Default)]
pub struct NameBatch {
    names: Vec<u8>,
    pub files: Vec<NameRef>,
    pub directories: Vec<NameRef>,
    /// What they are is not known yet.
    pub unknown: Vec<NameRef>,
    counted: Option<(Arc<AtomicUsize>, usize)>,
}

impl NameBatch {
    pub fn clear(&mut self) {
        self.release_memory_count();
        self.names.clear();
        self.files.clear();
        self.directories.clear();
        self.unknown.clear();
    }

    pub fn add_file(&mut self, name: &CStr, inode: u64) {
        let name_ref = self.keep(name, inode);
        self.files.push(name_ref);
    }

    pub fn add_directory(&mut self, name: &CStr, inode: u64) {
        let name_ref = self.keep(name, inode);
        self.directories.push(name_ref);
    }

    pub fn add_unknown(&mut self, name: &CStr, inode: u64) {
        let name_ref = self.keep(name, inode);
        self.unknown.push(name_ref);
    }

    fn release_memory_count(&mut self) {
        if let Some((held, number)) = self.counted.take() {
            held.fetch_sub(number, Relaxed);
        }
    }

    fn keep(&mut self, name: &CStr, inode: u64) -> NameRef {
        let at = place(self.names.len());
        self.names.extend_from_slice(name.to_bytes_with_nul());
        NameRef { inode, at }
    }

    pub fn name(&self, name_ref: NameRef) -> &CStr {
        CStr::from_bytes_until_nul(&self.names[name_ref.at as usize..])
            .expect("kept from a C string")
    }

    /// Adds the bytes that came since the last time to the number of all that are held, from
    /// which they are taken when the batch goes.
    pub fn update_memory_count(&mut self, held: &Arc<AtomicUsize>) {
        let now = self.bytes();
        let (held, before) = self.counted.get_or_insert_with(|| (Arc::clone(held), 0));
        held.fetch_add(now - *before, Relaxed);
        *before = now;
    }

    /// Names in it.
    pub fn len(&self) -> usize {
        self.files.len() + self.directories.len() + self.unknown.len()
    }

    /// What it takes, about.
    pub fn bytes(&self) -> usize {
        self.names.len() + self.len() * std::mem::size_of::<NameRef>()
    }

    /// Puts directories in the order of their inodes: a file system that has parts, each with a
    /// lock of its own, has neighbours in the same one, so that whoever is given the half of them
    /// works in other parts. Files too if there are many.
    pub fn sort(&mut self) {
        self.directories.sort_unstable();
        if self.files.len() >= SORT_FROM {
            self.files.sort_unstable();
        }
    }
}

impl Drop for NameBatch {
    fn drop(&mut self) {
        self.release_memory_count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::CString;

    fn names() -> impl Strategy<Value = Vec<CString>> {
        let name = proptest::collection::vec(1u8..=255, 1..=1_000);
        proptest::collection::vec(name.prop_map(|name| CString::new(name).unwrap()), 0..40)
    }

    proptest! {
        #[test]
        fn a_stack_gives_names_back_from_the_end(names in names()) {
            let mut stack = NameStack::default();
            for name in &names {
                stack.push(name);
            }
            for name in names.iter().rev() {
                let at = stack.last().unwrap();
                prop_assert_eq!(stack.name(at), name.as_c_str());
                prop_assert_eq!(stack.behind(at), stack.end());
                stack.cut(at);
            }
            prop_assert_eq!(stack.last(), None);
        }

        #[test]
        fn copied_names_are_the_same_in_another_stack(names in names()) {
            let mut stack = NameStack::default();
            stack.push(c"above");
            let begin = stack.end();
            for name in &names {
                stack.push(name);
            }
            let mut other = NameStack::default();
            other.append(&stack.copy(begin, stack.end()));
            let mut at = 0;
            for name in &names {
                prop_assert_eq!(other.name(at), name.as_c_str());
                at = other.behind(at);
            }
            prop_assert_eq!(at, other.end());
        }

        #[test]
        fn a_chunk_keeps_every_name(names in names()) {
            let mut batch = NameBatch::default();
            for (number, name) in names.iter().enumerate() {
                batch.add_file(name, 1_000 - number as u64);
            }
            batch.sort();
            prop_assert_eq!(batch.len(), names.len());
            for (name_ref, name) in batch.files.iter().zip(&names) {
                prop_assert_eq!(batch.name(*name_ref), name.as_c_str());
            }
        }
    }

    #[test]
    fn directories_are_in_the_order_of_their_inodes_and_many_files_too() {
        for (number, files_are) in [(SORT_FROM, true), (SORT_FROM - 1, false)] {
            let mut batch = NameBatch::default();
            for inode in (0..number as u64).rev() {
                batch.add_file(c"file", inode);
                if inode < 3 {
                    batch.add_directory(c"directory", inode);
                }
            }
            batch.sort();
            assert!(batch.directories.windows(2).all(|two| two[0] < two[1]));
            assert_eq!(batch.files.windows(2).all(|two| two[0] < two[1]), files_are);
        }
    }
}
