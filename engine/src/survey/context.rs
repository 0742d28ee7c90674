//! The state that all walkers share.

use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::time::Duration;

use rustix::fd::OwnedFd;

use super::dir_reader::User;
use super::output::Output;
use super::pool::Pool;
use crate::filters::Filters;

/// Sizes and intervals of a walker.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Buffer of getdents64: 256 KiB for about 8,000 names.
    pub buffer_bytes: usize,
    /// With this many names from one getdents64, the names are shared with another walker (they are
    /// milliseconds of work) and processed in the order of inodes. Fewer names have inodes that are close
    /// to each other in any order.
    pub min_shared_names: usize,
    /// Pending names of one directory. With more, the rest is read later.
    pub max_pending_bytes: usize,
    /// Open directories on the stack of a walker.
    pub max_open: usize,
    pub max_records: u32,
    pub send_interval: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            buffer_bytes: 256 << 10,
            min_shared_names: 2_000,
            max_pending_bytes: 1 << 20,
            max_open: 64,
            max_records: 4_000,
            send_interval: Duration::from_millis(100),
        }
    }
}

#[derive(Debug)]
pub struct Root {
    pub path: Vec<u8>,
    pub descriptor: Arc<OwnedFd>,
    pub device: u64,
}

pub struct Context {
    pub roots: Vec<Root>,
    /// Count by the types in the directories, without stat where possible.
    pub names_only: bool,
    /// Entries that are also counted separately.
    pub filters: Option<Filters>,
    pub user: User,
    pub limits: Limits,
    pub pool: Pool,
    pub output: Output,
    /// Number of the next directory.
    pub next_number: AtomicU64,
}
