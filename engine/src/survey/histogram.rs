//! Entries of one directory by the time of their last change, by their size, and by their labels.

use super::records::Cells;

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
}

fn numbers<N: std::str::FromStr + Ord>(text: &str) -> Option<Vec<N>> {
    let numbers: Option<Vec<N>> = text.split(',').map(|word| word.parse().ok()).collect();
    numbers.filter(|numbers| numbers.windows(2).all(|pair| pair[0] < pair[1]))
}

/// The number of entries and their allocated bytes in each class: those of the times, then those of
/// the sizes, then the labels. An inode with several names adds no bytes, because its link records
/// have them.
#[derive(Debug, Default)]
pub struct Histogram {
    cells: [(u32, u64); MAX_CLASSES],
    /// The classes of the labels, in parallel with their cells.
    labels: Vec<u16>,
    label_cells: Vec<(u32, u64)>,
}

impl Histogram {
    pub fn add(&mut self, classes: &Classes, modified_s: i64, bytes: u64, allocated_bytes: u64) {
        let times = classes
            .modified_s
            .partition_point(|limit| *limit < modified_s);
        let sizes = classes.size_bytes.partition_point(|limit| *limit < bytes);
        for class in [times, classes.modified_s.len() + 1 + sizes] {
            add_to(&mut self.cells[class], allocated_bytes);
        }
    }

    pub fn add_label(&mut self, class: u16, allocated_bytes: u64) {
        let known = self.labels.iter().position(|label| *label == class);
        let at = known.unwrap_or_else(|| {
            self.labels.push(class);
            self.label_cells.push((0, 0));
            self.labels.len() - 1
        });
        add_to(&mut self.label_cells[at], allocated_bytes);
    }

    /// Adds the classes with entries to the cells of a batch.
    pub fn move_to(&self, directory: u64, cells: &mut Cells) {
        for (class, (entries, allocated)) in self.cells.iter().enumerate() {
            if *entries > 0 {
                cells.add(directory, class as u16, *entries, *allocated);
            }
        }
        for (class, (entries, allocated)) in self.labels.iter().zip(&self.label_cells) {
            cells.add(directory, *class, *entries, *allocated);
        }
    }
}

fn add_to((entries, allocated): &mut (u32, u64), allocated_bytes: u64) {
    *entries += 1;
    *allocated = allocated.saturating_add(allocated_bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_the_highest_value_of_its_class() {
        let classes = Classes::parse("-5,7:0,9").unwrap();
        let mut histogram = Histogram::default();
        for (modified_s, bytes) in [(-6, 0), (-5, 1), (-4, 9), (7, 10), (8, u64::MAX)] {
            histogram.add(&classes, modified_s, bytes, 1);
        }
        let entries = histogram.cells.map(|(entries, _)| entries);
        assert_eq!(entries[..7], [2, 2, 1, 1, 2, 2, 0]);
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
