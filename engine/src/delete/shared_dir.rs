//! Directories that several workers share, up to their target.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fd::OwnedFd;

use crate::file_systems::FileSystem;
use crate::identity::DirIdentity;

/// A directory that the command line names.
pub struct Target {
    /// Path in messages.
    pub path: Vec<u8>,
    /// Its name in its parent; empty if the target itself is kept.
    pub name: CString,
    /// Its parent, for the removal of the target; `None` if the target is kept.
    pub parent_fd: Mutex<Option<OwnedFd>>,
    pub file_system: &'static FileSystem,
}

impl Target {
    /// Takes the descriptor of the parent, to remove the target there.
    pub fn take_parent_fd(&self) -> Option<OwnedFd> {
        self.parent_fd.lock().expect("no worker panics").take()
    }

    /// Stores the descriptor of the parent for a second removal.
    pub fn restore_parent_fd(&self, parent_fd: Option<OwnedFd>) {
        *self.parent_fd.lock().expect("no worker panics") = parent_fd;
    }
}

pub enum DirLocation {
    Target(Target),
    Child {
        parent: Arc<SharedDir>,
        name: CString,
    },
}

/// A directory with parts that several workers empty.
pub struct SharedDir {
    pub location: DirLocation,
    pub identity: DirIdentity,
    /// Levels below the target.
    pub depth: u32,
    /// Workers in it, queued parts of it, and shared subdirectories. The last one to finish removes the
    /// directory.
    pending: AtomicUsize,
    /// An entry could not be removed, so the directory cannot be empty.
    is_incomplete: AtomicBool,
    /// Repeated reads because it was not empty.
    rereads: AtomicUsize,
}

impl SharedDir {
    /// Creates a directory with one worker in it.
    pub fn new(location: DirLocation, identity: DirIdentity) -> Arc<Self> {
        let depth = match &location {
            DirLocation::Target(_) => 0,
            DirLocation::Child { parent, .. } => parent.depth + 1,
        };
        Arc::new(Self {
            location,
            identity,
            depth,
            pending: AtomicUsize::new(1),
            is_incomplete: AtomicBool::new(false),
            rereads: AtomicUsize::new(0),
        })
    }

    pub fn add_pending(&self) {
        self.pending.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether no worker or part is pending any more.
    pub fn finish_pending(&self) -> bool {
        self.pending.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns the parts besides the caller's.
    pub fn pending_parts(&self) -> usize {
        self.pending.load(Ordering::Relaxed).saturating_sub(1)
    }

    pub fn mark_incomplete(&self) {
        self.is_incomplete.store(true, Ordering::Relaxed);
    }

    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Relaxed)
    }

    /// Returns whether the directory may be read again, which is `max` times.
    pub fn try_reread(&self, max: usize) -> bool {
        self.rereads.fetch_add(1, Ordering::Relaxed) < max
    }

    pub fn target(&self) -> &Target {
        let mut directory = self;
        loop {
            match &directory.location {
                DirLocation::Target(target) => return target,
                DirLocation::Child { parent, .. } => directory = parent,
            }
        }
    }

    pub fn path(&self) -> Vec<u8> {
        let mut names = Vec::new();
        let mut directory = self;
        let mut path = loop {
            match &directory.location {
                DirLocation::Target(target) => break target.path.clone(),
                DirLocation::Child { parent, name } => {
                    names.push(name.as_bytes());
                    directory = parent;
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
