//! The descriptor table of the process, and its limits.

use rustix::io::fcntl_dupfd_cloexec;

/// Enlarges the descriptor table while the process has one thread. With several threads the kernel
/// waits for all processors at each growth (synchronize_rcu in fs/file.c, some 13 ms), which is longer
/// than the deletion of a thousand directories.
///
/// On failure the table grows later.
pub fn grow_descriptor_table(descriptors: u64) {
    let last = descriptors.checked_sub(1).map(i32::try_from);
    let Some(Ok(last)) = last else {
        return;
    };
    drop(fcntl_dupfd_cloexec(std::io::stdout(), last));
}

/// INR_OPEN_CUR in linux/fs.h.
const DEFAULT_LIMIT: u64 = 1024;

/// Returns the soft and the hard limit of descriptors; the default if a filter refuses the call.
pub fn descriptor_limits() -> (u64, u64) {
    crate::sys::descriptor_limits().unwrap_or((DEFAULT_LIMIT, DEFAULT_LIMIT))
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
    fn descriptor_table_is_large_enough_and_limits_are_checked() {
        let more = table_size() + 1;
        grow_descriptor_table(more);
        assert!(table_size() >= more);
        grow_descriptor_table(0);
        grow_descriptor_table(u64::MAX);
    }
}
