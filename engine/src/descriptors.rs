//! The process's table of descriptors.

use rustix::io::fcntl_dupfd_cloexec;

/// Makes the table as large as so many descriptors need, while there is only one thread: with
/// several the kernel waits each time that it grows until all processors have noticed (some 13 ms,
/// synchronize_rcu in its file.c), which is longer than to delete a thousand directories.
///
/// Where that cannot be done it grows later.
pub fn make_room_for(descriptors: u64) {
    let last = descriptors.checked_sub(1).map(i32::try_from);
    let Some(Ok(last)) = last else {
        return;
    };
    drop(fcntl_dupfd_cloexec(std::io::stdout(), last));
}

/// What every process is given at first (INR_OPEN_CUR in linux/fs.h).
const USUAL_LIMIT: u64 = 1024;

/// How many descriptors this process may have now, and how many it may allow itself; the usual
/// number where a filter refuses the call.
pub fn descriptor_limits() -> (u64, u64) {
    crate::sys::descriptor_limits().unwrap_or((USUAL_LIMIT, USUAL_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table_size() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        line.unwrap().trim().parse().unwrap()
    }

    #[test]
    fn the_table_does_not_grow_any_more() {
        let more = table_size() + 1;
        make_room_for(more);
        assert!(table_size() >= more);
        make_room_for(0);
        make_room_for(u64::MAX);
    }
}
