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
    /// Exchanges the descriptor of the parent: it is taken to remove the target there, and given back if
    /// the target is read again.
    pub fn replace_parent_fd(&self, parent_fd: Option<OwnedFd>) -> Option<OwnedFd> {
        std::mem::replace(
            &mut *self.parent_fd.lock().expect("no worker panics"),
            parent_fd,
        )
    }
}

/// A directory with parts that several workers empty.
pub struct SharedDir {
    pub target: Arc<Target>,
    /// The directory that contains it, and its name there; `None` for the target itself.
    pub parent: Option<(Arc<SharedDir>, CString)>,
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
    pub fn new(
        target: Arc<Target>,
        parent: Option<(Arc<Self>, CString)>,
        identity: DirIdentity,
    ) -> Arc<Self> {
        Arc::new(Self {
            target,
            depth: parent.as_ref().map_or(0, |(parent, _)| parent.depth + 1),
            parent,
            identity,
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

    pub fn path(&self) -> Vec<u8> {
        let mut names = Vec::new();
        let mut directory = self;
        while let Some((parent, name)) = &directory.parent {
            names.push(name.as_bytes());
            directory = parent;
        }
        names.push(&self.target.path);
        names.reverse();
        names.join(&b'/')
    }
}
