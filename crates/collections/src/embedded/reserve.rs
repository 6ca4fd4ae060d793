//! Disk space reserved for deletions, which would find none on a full disk. A file system that
//! compresses reserves less.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::embedded::storage::{Storage, is_full};

const NAME: &str = ".reserve";
const BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Reserve {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    lacks_room: AtomicBool,
}

impl Reserve {
    pub(super) fn new(storage: Arc<dyn Storage>, folder: &Path) -> Self {
        Self { storage, path: folder.join(NAME), lacks_room: AtomicBool::new(false) }
    }

    pub(super) fn set_aside(&self) {
        let there = self.storage.read(&self.path).and_then(|file| file.length());
        if there.is_ok_and(|length| length == BYTES as u64) {
            return;
        }
        let made = self.fill();
        if made.is_err() {
            let _ = self.storage.remove_file(&self.path);
        }
        self.lacks_room.store(made.is_err_and(|error| is_full(&error)), Ordering::Relaxed);
    }

    fn fill(&self) -> io::Result<()> {
        let file = self.storage.create(&self.path)?;
        file.write_at(&vec![0; BYTES], 0)?;
        file.sync()
    }

    pub(super) fn give_up(&self) {
        if self.storage.remove_file(&self.path).is_ok() {
            self.lacks_room.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn lacks_room(&self) -> bool {
        self.lacks_room.load(Ordering::Relaxed)
    }
}
