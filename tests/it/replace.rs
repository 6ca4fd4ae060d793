//! Replacing a model file: whatever fails, and whenever the power goes, the file is old or new.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use cognate::model::disk;
use cognate::model::disk::{Disk, DiskFile};

/// What reached the simulated disk, in order.
#[derive(Debug, Clone)]
enum Step {
    Create(PathBuf),
    Write(PathBuf, Vec<u8>),
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    SyncDirectory,
}

/// A disk in memory that can fail at its n-th operation and remembers every step.
#[derive(Default)]
struct Simulated {
    steps: Rc<RefCell<Vec<Step>>>,
    operations: Rc<RefCell<usize>>,
    fail_at: Option<usize>,
    names: RefCell<Vec<PathBuf>>,
}

struct SimulatedFile {
    path: PathBuf,
    bytes: Cursor<Vec<u8>>,
    steps: Rc<RefCell<Vec<Step>>>,
    operations: Rc<RefCell<usize>>,
    fail_at: Option<usize>,
}

fn count(operations: &RefCell<usize>, fail_at: Option<usize>) -> io::Result<()> {
    let mut operations = operations.borrow_mut();
    *operations += 1;
    if Some(*operations) == fail_at {
        return Err(io::Error::from(io::ErrorKind::StorageFull));
    }
    Ok(())
}

impl Simulated {
    fn step(&self, step: Step) -> io::Result<()> {
        count(&self.operations, self.fail_at)?;
        self.steps.borrow_mut().push(step);
        Ok(())
    }
}

impl Disk for Simulated {
    type File = SimulatedFile;
    type Lock = ();

    fn lock(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn entries(&self, _: &Path) -> io::Result<Vec<PathBuf>> {
        Ok(self.names.borrow().clone())
    }

    fn create(&self, path: &Path) -> io::Result<SimulatedFile> {
        self.step(Step::Create(path.to_owned()))?;
        Ok(SimulatedFile {
            path: path.to_owned(),
            bytes: Cursor::new(Vec::new()),
            steps: self.steps.clone(),
            operations: self.operations.clone(),
            fail_at: self.fail_at,
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(Step::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        // Cleaning up after a failure must not fail by the same injected fault.
        self.steps.borrow_mut().push(Step::Remove(path.to_owned()));
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        self.step(Step::SyncDirectory)
    }
}

impl Read for SimulatedFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(out)
    }
}

impl Write for SimulatedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        count(&self.operations, self.fail_at)?;
        // Short writes, as a real disk may do them.
        let taken = bytes.len().min(1000);
        self.bytes.write_all(&bytes[..taken])?;
        let now = self.bytes.get_ref().clone();
        self.steps.borrow_mut().push(Step::Write(self.path.clone(), now));
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SimulatedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

impl DiskFile for SimulatedFile {
    fn reserve(&mut self, _: u64) -> io::Result<()> {
        count(&self.operations, self.fail_at)
    }

    fn publish(&mut self, _: u32) -> io::Result<()> {
        count(&self.operations, self.fail_at)
    }

    fn sync(&mut self) -> io::Result<()> {
        count(&self.operations, self.fail_at)?;
        self.steps.borrow_mut().push(Step::Sync(self.path.clone()));
        Ok(())
    }
}

const TARGET: &str = "models/m.safetensors";

fn new_bytes() -> Vec<u8> {
    (0..5000_u32).flat_map(|n| n.to_le_bytes()).collect()
}

fn write_new(disk: &Simulated) -> io::Result<()> {
    let bytes = new_bytes();
    disk::replace(disk, Path::new(TARGET), 0o644, bytes.len() as u64, |file| file.write_all(&bytes))
}

/// What the disk may hold after the power went following `steps`: names whose directory was synced
/// for certain, later renames perhaps; of each file what was synced, or less or more.
fn crashes(steps: &[Step]) -> Vec<BTreeMap<PathBuf, Vec<u8>>> {
    let mut synced: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    let mut latest: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    let mut on_disk = BTreeMap::from([(PathBuf::from(TARGET), b"old".to_vec())]);
    let mut perhaps = Vec::new();
    for step in steps {
        match step {
            Step::Create(path) => {
                latest.insert(path.clone(), Vec::new());
                synced.insert(path.clone(), Vec::new());
            }
            Step::Write(path, bytes) => drop(latest.insert(path.clone(), bytes.clone())),
            Step::Sync(path) => drop(synced.insert(path.clone(), latest[path].clone())),
            Step::Rename(from, to) => perhaps.push((to.clone(), synced[from].clone())),
            Step::Remove(path) => drop(latest.remove(path)),
            Step::SyncDirectory => on_disk.extend(perhaps.drain(..)),
        }
    }
    let mut outcomes = vec![on_disk.clone()];
    for (path, bytes) in perhaps {
        on_disk.insert(path, bytes);
        outcomes.push(on_disk.clone());
    }
    outcomes
}

#[test]
fn power_lost_after_any_step_leaves_the_old_file_or_the_new_one() {
    let disk = Simulated::default();
    write_new(&disk).unwrap();
    let steps = disk.steps.borrow().clone();
    assert!(steps.len() > 20);
    let mut seen_new = false;
    for kept in 0..=steps.len() {
        for outcome in crashes(&steps[..kept]) {
            let found = &outcome[Path::new(TARGET)];
            let new = *found == new_bytes();
            assert!(new || found == b"old", "after {kept} steps: {} bytes", found.len());
            seen_new |= new;
        }
    }
    assert!(seen_new);
    let last = crashes(&steps).remove(0);
    assert_eq!(last[Path::new(TARGET)], new_bytes(), "a finished write survives any crash");
}

#[test]
fn a_failure_of_any_operation_leaves_the_old_file_and_no_temporary_one() {
    let whole = Simulated::default();
    write_new(&whole).unwrap();
    let operations = *whole.operations.borrow();
    for fail_at in 1..=operations {
        let disk = Simulated { fail_at: Some(fail_at), ..Simulated::default() };
        let error = write_new(&disk).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let steps = disk.steps.borrow();
        let renamed = steps.iter().any(|step| matches!(step, Step::Rename(..)));
        let created = steps.iter().any(|step| matches!(step, Step::Create(..)));
        let removed = steps.iter().any(|step| matches!(step, Step::Remove(..)));
        // Only the last operation, the sync of the directory, may fail after the rename.
        assert_eq!(renamed, fail_at == operations, "operation {fail_at}");
        assert_eq!(removed, created && !renamed, "operation {fail_at}");
    }
}

#[test]
fn a_temporary_file_left_by_a_crash_is_removed_by_the_next_writer() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("m.safetensors");
    let stale = folder.path().join(".cognate-tmp-model-1-0");
    let other = folder.path().join("keep.txt");
    std::fs::write(&stale, "half a model").unwrap();
    std::fs::write(&other, "mine").unwrap();
    let written: io::Result<()> =
        disk::replace(&disk::LocalDisk, &target, 0o640, 3, |file| file.write_all(b"new"));
    written.unwrap();
    assert!(!stale.exists());
    assert!(other.exists());
    assert_eq!(std::fs::read(&target).unwrap(), b"new");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn only_regular_files_are_replaced_and_links_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("model-1.safetensors");
    let link = folder.path().join("current");
    std::fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(disk::resolve(&link).unwrap().0, real.canonicalize().unwrap());
    assert!(disk::resolve(folder.path()).is_err());
    assert!(disk::resolve(Path::new("/dev/null")).is_err());
}
