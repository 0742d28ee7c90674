//! Entries of one directory by the time of their last change, by their size, and by their labels.

use std::ffi::CStr;
use std::mem;

use rustix::fs::Statx;

use super::labels::{LabelTable, Labels, MAX_LABELS};
use super::records::{Cells, LabelRecord};

/// Classes of times and sizes together; those of the labels follow.
pub const MAX_CLASSES: usize = 16;

/// The classes of a survey. A limit is the highest value of its class; one class more is above the
/// last limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes {
    /// Modification times, ascending (epoch seconds).
    modified_s: Vec<i64>,
    /// Apparent sizes, ascending.
    size_bytes: Vec<u64>,
}

impl Classes {
    /// Parses the limits of both kinds, as in `-60,-5,7:0,4095`.
    pub fn parse(limits: &str) -> Option<Self> {
        let (modified_s, size_bytes) = limits.split_once(':')?;
        let classes = Self {
            modified_s: numbers(modified_s)?,
            size_bytes: numbers(size_bytes)?,
        };
        let number = classes.modified_s.len() + classes.size_bytes.len() + 2;
        (number <= MAX_CLASSES).then_some(classes)
    }

    /// Returns the class of a time, and that of a size.
    fn of(&self, modified_s: i64, bytes: u64) -> [u16; 2] {
        let time = self.modified_s.partition_point(|limit| *limit < modified_s);
        let size = self.size_bytes.partition_point(|limit| *limit < bytes);
        [time as u16, (self.modified_s.len() + 1 + size) as u16]
    }
}

fn numbers<N: std::str::FromStr + Ord>(text: &str) -> Option<Vec<N>> {
    let numbers: Option<Vec<N>> = text.split(',').map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| numbers.windows(2).all(|pair| pair[0] < pair[1]))
}

/// The number of entries and their allocated bytes in each class: those of the times, then those of
/// the sizes, then the labels. An inode with several names adds no bytes, because its link records
/// have them.
///
/// A walker has one, for the directory that it reads.
pub struct Histogram<'a> {
    classes: &'a Classes,
    labels: Labels<'a>,
    cells: Vec<(u32, u64)>,
    /// Classes with entries.
    used: Vec<u16>,
}

impl<'a> Histogram<'a> {
    pub fn new(classes: &'a Classes, table: &'a LabelTable) -> Self {
        Self {
            classes,
            labels: Labels::new(table),
            cells: vec![(0, 0); MAX_CLASSES + MAX_LABELS],
            used: Vec::new(),
        }
    }

    /// Adds an entry; returns the classes of its suffix and of its owner.
    pub fn add(
        &mut self,
        name: &CStr,
        status: &Statx,
        allocated_bytes: u64,
        new: &mut Vec<LabelRecord>,
    ) -> [Option<u16>; 2] {
        let [time, size] = self.classes.of(status.stx_mtime.tv_sec, status.stx_size);
        let suffix = self.labels.suffix(name, new);
        let owner = self.labels.owner(status.stx_uid, new);
        for class in [Some(time), Some(size), suffix, owner]
            .into_iter()
            .flatten()
        {
            let (entries, allocated) = &mut self.cells[usize::from(class)];
            if *entries == 0 {
                self.used.push(class);
            }
            *entries += 1;
            *allocated = allocated.saturating_add(allocated_bytes);
        }
        [suffix, owner]
    }

    /// Moves the classes with entries to the cells of a batch.
    pub fn move_to(&mut self, directory: u64, cells: &mut Cells) {
        for class in self.used.drain(..) {
            let (entries, allocated_bytes) = mem::take(&mut self.cells[usize::from(class)]);
            cells.add(directory, class, entries, allocated_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_the_highest_value_of_its_class() {
        let classes = Classes::parse("-5,7:0,9").unwrap();
        let of_entries = [(-6, 0), (-5, 1), (-4, 9), (7, 10), (8, u64::MAX)];
        let of_entries = of_entries.map(|(modified_s, bytes)| classes.of(modified_s, bytes));
        assert_eq!(of_entries, [[0, 3], [0, 4], [1, 4], [1, 5], [2, 5]]);
    }

    #[test]
    fn invalid_limits_are_refused() {
        let many = format!(
            "{}:0",
            (0..14).map(|n| n.to_string() + ",").collect::<String>() + "14"
        );
        for limits in ["", "1", "1:", ":1", "2,1:0", "1,1:0", "1:-1", "x:1", &many] {
            assert_eq!(Classes::parse(limits), None, "{limits}");
        }
    }
}
