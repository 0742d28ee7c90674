//! A directory on which several workers may be at work, and the way from it up to its target.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fd::OwnedFd;

use super::file_systems::FileSystem;
use crate::identity::Known;

/// What was named on the command line.
pub struct Target {
    /// As messages name it.
    pub path: Vec<u8>,
    /// Its name in the directory that holds it; empty where the target itself is kept.
    pub name: CString,
    /// That directory, until the target is removed from it.
    pub holder: Mutex<Option<OwnedFd>>,
    pub file_system: FileSystem,
}

impl Target {
    /// The directory that holds it, for the one who removes the target from it.
    pub fn take_holder(&self) -> Option<OwnedFd> {
        self.holder.lock().expect("nobody panics with it").take()
    }

    /// Gives it back, to be taken once more.
    pub fn keep_holder(&self, holder: Option<OwnedFd>) {
        *self.holder.lock().expect("nobody panics with it") = holder;
    }
}

/// Where a directory lies.
pub enum Place {
    Target(Target),
    Below {
        above: Arc<Directory>,
        name: CString,
    },
}

/// A directory of which parts were given to several workers.
pub struct Directory {
    pub place: Place,
    pub known: Known,
    /// Levels below the target.
    pub depth: u32,
    /// Workers in it, parts of it that wait for a worker, and such directories below it.
    pending: AtomicUsize,
    /// Something in it could not be removed, so it cannot be empty.
    is_spoiled: AtomicBool,
    /// How often it was read because it was not empty.
    rereads: AtomicUsize,
    /// Entries removed in it, without those below; only counted where several may do so.
    pub removed: AtomicU64,
}

impl Directory {
    /// A directory with one who is at work in it.
    pub fn new(place: Place, known: Known) -> Arc<Self> {
        let depth = match &place {
            Place::Target(_) => 0,
            Place::Below { above, .. } => above.depth + 1,
        };
        Arc::new(Self {
            place,
            known,
            depth,
            pending: AtomicUsize::new(1),
            is_spoiled: AtomicBool::new(false),
            rereads: AtomicUsize::new(0),
            removed: AtomicU64::new(0),
        })
    }

    /// One more is at work in it.
    pub fn begin(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// One less is; tells whether it was the last.
    pub fn end(&self) -> bool {
        self.pending.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Parts that others work on, or will.
    pub fn parts_given(&self) -> usize {
        self.pending.load(Ordering::Relaxed).saturating_sub(1)
    }

    pub fn spoil(&self) {
        self.is_spoiled.store(true, Ordering::Relaxed);
    }

    pub fn is_spoiled(&self) -> bool {
        self.is_spoiled.load(Ordering::Relaxed)
    }

    /// Tells whether it may be read once more, at most `most` times.
    pub fn may_be_read_again(&self, most: usize) -> bool {
        self.rereads.fetch_add(1, Ordering::Relaxed) < most
    }

    pub fn target(&self) -> &Target {
        let mut directory = self;
        loop {
            match &directory.place {
                Place::Target(target) => return target,
                Place::Below { above, .. } => directory = above,
            }
        }
    }

    pub fn path(&self) -> Vec<u8> {
        let mut names = Vec::new();
        let mut directory = self;
        let mut path = loop {
            match &directory.place {
                Place::Target(target) => break target.path.clone(),
                Place::Below { above, name } => {
                    names.push(name.as_bytes());
                    directory = above;
                }
            }
        };
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        path
    }
}
