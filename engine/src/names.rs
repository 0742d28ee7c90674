//! Compact storage of names: a stack of directory names, and a batch of names of one directory.

use std::ffi::CStr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

use rustix::fs::FileType;

/// A stack of names in one buffer. A name is stored as its length, its bytes, a NUL and its length
/// again. A length has two bytes, because some file systems have names longer than NAME_MAX (255).
#[derive(Default)]
pub struct NameStack {
    bytes: Vec<u8>,
}

/// Bytes of a length, and bytes of a name besides its own.
const LENGTH_BYTES: usize = 2;
const OVERHEAD_BYTES: usize = 2 * LENGTH_BYTES + 1;

impl NameStack {
    pub fn push(&mut self, name: &CStr) {
        let name = name.to_bytes_with_nul();
        let length = u16::try_from(name.len() - 1).expect("getdents64 has two bytes for a length");
        self.bytes.extend_from_slice(&length.to_ne_bytes());
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(&length.to_ne_bytes());
    }

    /// Returns the offset of the last name.
    pub fn last(&self) -> Option<u32> {
        let end = self.bytes.len().checked_sub(LENGTH_BYTES)?;
        Some(offset(self.bytes.len() - self.length(end) - OVERHEAD_BYTES))
    }

    pub fn name(&self, at: u32) -> &CStr {
        let start = at as usize + LENGTH_BYTES;
        let end = start + self.length(at as usize) + 1;
        CStr::from_bytes_with_nul(&self.bytes[start..end]).expect("pushed from a C string")
    }

    /// Returns the offset of the name after this one.
    pub fn next_after(&self, at: u32) -> u32 {
        offset(at as usize + self.length(at as usize) + OVERHEAD_BYTES)
    }

    fn length(&self, at: usize) -> usize {
        usize::from(u16::from_ne_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the offset of the next name to be pushed.
    pub fn end(&self) -> u32 {
        offset(self.bytes.len())
    }

    /// Drops the name at this offset and all names after it.
    pub fn truncate(&mut self, at: u32) {
        self.bytes.truncate(at as usize);
    }

    /// Copies this many names from an offset on; returns also the offset after them.
    pub fn copy(&self, from: u32, number: usize) -> (Box<[u8]>, u32) {
        let to = (0..number).fold(from, |at, _| self.next_after(at));
        (self.bytes[from as usize..to as usize].into(), to)
    }

    /// Appends the result of `copy`.
    pub fn append(&mut self, copied: &[u8]) {
        self.bytes.extend_from_slice(copied);
    }
}

/// Offsets have four bytes. An overflow must panic, because a wrapped offset is another name.
fn offset(at: usize) -> u32 {
    u32::try_from(at).expect("less than 4 GiB of names")
}

/// A name of a batch.
#[derive(Clone, Copy, Debug)]
pub struct NameRef {
    inode: u64,
    /// Its offset.
    at: u32,
    /// d_type, which a file system may leave unknown.
    pub kind: FileType,
}

/// Fewer files are removed in directory order, because their inodes share few blocks in any order.
const MIN_SORTED_FILES: usize = 256;

/// Names read from one directory, without `.` and `..`.
#[derive(Debug, Default)]
pub struct NameBatch {
    names: Vec<u8>,
    pub refs: Vec<NameRef>,
    accounted: Option<(Arc<AtomicUsize>, usize)>,
}

impl NameBatch {
    pub fn clear(&mut self) {
        self.release_memory_count();
        self.names.clear();
        self.refs.clear();
    }

    pub fn add(&mut self, kind: FileType, name: &CStr, inode: u64) {
        let at = offset(self.names.len());
        self.names.extend_from_slice(name.to_bytes_with_nul());
        self.refs.push(NameRef { inode, at, kind });
    }

    fn release_memory_count(&mut self) {
        if let Some((total_bytes, number)) = self.accounted.take() {
            total_bytes.fetch_sub(number, Relaxed);
        }
    }

    pub fn name(&self, name_ref: NameRef) -> &CStr {
        CStr::from_bytes_until_nul(&self.names[name_ref.at as usize..])
            .expect("stored from a C string")
    }

    /// Adds the growth since the last call to the total of all batches. The drop subtracts it.
    pub fn update_memory_count(&mut self, total_bytes: &Arc<AtomicUsize>) {
        let now = self.bytes();
        let (total_bytes, before) = self
            .accounted
            .get_or_insert_with(|| (Arc::clone(total_bytes), 0));
        total_bytes.fetch_add(now - *before, Relaxed);
        *before = now;
    }

    /// Returns the approximate memory in bytes.
    pub fn bytes(&self) -> usize {
        self.names.len() + self.refs.len() * std::mem::size_of::<NameRef>()
    }

    /// Moves directories behind the files; returns the number of files. Where the order of inodes matters,
    /// sorts directories by inode number, and files if there are many.
    ///
    /// In a file system with allocation groups, neighbours are then in the same group, and the worker
    /// that gets half of them works in other groups.
    pub fn partition(&mut self, is_sorted: bool) -> usize {
        let is_directory = |name_ref: &NameRef| name_ref.kind == FileType::Directory;
        self.refs.sort_by_key(is_directory);
        let files = self
            .refs
            .partition_point(|name_ref| !is_directory(name_ref));
        if is_sorted {
            sort_by_inode(&mut self.refs[files..]);
        }
        if is_sorted && files >= MIN_SORTED_FILES {
            sort_by_inode(&mut self.refs[..files]);
        }
        files
    }

    /// Sorts all names by inode number, which is the order on disk and in memory.
    pub fn sort(&mut self) {
        sort_by_inode(&mut self.refs);
    }

    /// Splits off the names from an index on.
    pub fn split_off(&mut self, index: usize) -> Self {
        let mut rest = Self::default();
        for name_ref in self.refs.split_off(index) {
            rest.add(name_ref.kind, self.name(name_ref), name_ref.inode);
        }
        rest
    }
}

fn sort_by_inode(refs: &mut [NameRef]) {
    refs.sort_unstable_by_key(|name_ref| (name_ref.inode, name_ref.at));
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
        fn name_stack_pops_in_reverse_order(names in names()) {
            let mut stack = NameStack::default();
            for name in &names {
                stack.push(name);
            }
            for name in names.iter().rev() {
                let at = stack.last().unwrap();
                prop_assert_eq!(stack.name(at), name.as_c_str());
                prop_assert_eq!(stack.next_after(at), stack.end());
                stack.truncate(at);
            }
            prop_assert_eq!(stack.last(), None);
        }

        #[test]
        fn copied_names_are_equal_in_another_stack(names in names()) {
            let mut stack = NameStack::default();
            stack.push(c"above");
            let start = stack.end();
            for name in &names {
                stack.push(name);
            }
            let mut copy = NameStack::default();
            let (copied, to) = stack.copy(start, names.len());
            prop_assert_eq!(to, stack.end());
            copy.append(&copied);
            let mut at = 0;
            for name in &names {
                prop_assert_eq!(copy.name(at), name.as_c_str());
                at = copy.next_after(at);
            }
            prop_assert_eq!(at, copy.end());
        }

        #[test]
        fn name_batch_stores_every_name(names in names()) {
            let mut batch = NameBatch::default();
            for (number, name) in names.iter().enumerate() {
                batch.add(FileType::RegularFile, name, number as u64);
            }
            batch.sort();
            let half = names.len() / 2;
            let rest = batch.split_off(half);
            for (batch, names) in [(&batch, &names[..half]), (&rest, &names[half..])] {
                prop_assert_eq!(batch.refs.len(), names.len());
                for (name_ref, name) in batch.refs.iter().zip(names) {
                    prop_assert_eq!(batch.name(*name_ref), name.as_c_str());
                }
            }
        }
    }

    #[test]
    fn directories_and_many_files_are_sorted_by_inode() {
        for (number, is_sorted, are_files_sorted) in [
            (MIN_SORTED_FILES, true, true),
            (MIN_SORTED_FILES - 1, true, false),
            (MIN_SORTED_FILES, false, false),
        ] {
            let mut batch = NameBatch::default();
            for inode in (0..number as u64).rev() {
                batch.add(FileType::RegularFile, c"file", inode);
                if inode < 3 {
                    batch.add(FileType::Directory, c"directory", inode);
                }
            }
            assert_eq!(batch.partition(is_sorted), number);
            let (files, directories) = batch.refs.split_at(number);
            let inodes_increase =
                |refs: &[NameRef]| refs.windows(2).all(|pair| pair[0].inode < pair[1].inode);
            assert_eq!(inodes_increase(directories), is_sorted);
            assert_eq!(inodes_increase(files), are_files_sorted);
            assert!(directories
                .iter()
                .all(|name| name.kind == FileType::Directory));
            assert!(files.iter().all(|name| name.kind == FileType::RegularFile));
        }
    }
}
