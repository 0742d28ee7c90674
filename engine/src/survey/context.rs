//! What all walkers of a survey share.

use std::sync::atomic::AtomicU64;
use std::sync::Arc;
use std::time::Duration;

use rustix::fd::OwnedFd;

use super::dir_reader::User;
use super::output::Output;
use super::pool::Pool;
use crate::filters::Filters;

/// How much a walker takes, keeps and tells at a time.
#[derive(Clone, Debug)]
pub struct Limits {
    /// For getdents64: 256 KiB hold about 8,000 names.
    pub buffer_bytes: usize,
    /// What one read gave is given to another walker from so many names on, milliseconds of work,
    /// and looked at in the order of inodes: with fewer these lie close to each other anyway.
    pub names_given: usize,
    /// Names of unread subdirectories of one directory; with more it is read on later.
    pub waiting_bytes: usize,
    /// Open directories on the stack.
    pub open: usize,
    pub pieces_told: u32,
    pub tell_every: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            buffer_bytes: 256 << 10,
            names_given: 2_000,
            waiting_bytes: 1 << 20,
            open: 64,
            pieces_told: 4_000,
            tell_every: Duration::from_millis(100),
        }
    }
}

/// A surveyed directory.
#[derive(Debug)]
pub struct Root {
    pub path: Vec<u8>,
    pub descriptor: Arc<OwnedFd>,
    pub device: u64,
}

pub struct Shared {
    pub roots: Vec<Root>,
    /// Count by what directories tell of their entries, as far as they do.
    pub names_only: bool,
    /// What to count besides.
    pub filters: Option<Filters>,
    pub user: User,
    pub limits: Limits,
    pub pool: Pool,
    pub output: Output,
    /// Of the next directory that is told.
    pub number: AtomicU64,
}
