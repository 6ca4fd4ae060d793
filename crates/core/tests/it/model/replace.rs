//! Replacing a model file: whatever fails, and whenever the power goes, the file is old or new.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{Permissions, TryLockError};
use std::io;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use cognate::model::disk;
use cognate::model::disk::{Disk, DiskFile, LocalDisk};
use cognate::model::writer::Target;

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

    fn sweep(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn create(&self, directory: &Path, _: u32) -> io::Result<(PathBuf, SimulatedFile)> {
        let path = directory.join("temporary");
        self.step(Step::Create(path.clone()))?;
        let file = SimulatedFile {
            path: path.clone(),
            bytes: Cursor::new(Vec::new()),
            steps: self.steps.clone(),
            operations: self.operations.clone(),
            fail_at: self.fail_at,
        };
        Ok((path, file))
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
    let target = Target { path: TARGET.into(), mode: Some(0o644) };
    disk::replace(disk, &target, bytes.len() as u64, |file| file.write_all(&bytes))
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
    disk::replace_by(&target, b"new").unwrap();
    assert!(!stale.exists());
    assert!(other.exists());
    assert_eq!(std::fs::read(&target).unwrap(), b"new");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_temporary_file_that_somebody_is_writing_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, mut file) = LocalDisk.create(folder.path(), 0o600).unwrap();
    disk::replace_by(&folder.path().join("m.safetensors"), b"new").unwrap();
    assert!(theirs.exists(), "as where the lock on the folder is not seen by all");
    file.write_all(b"whole").unwrap();
    LocalDisk.rename(&theirs, &folder.path().join("theirs")).unwrap();
    drop(file);
    disk::replace_by(&folder.path().join("m.safetensors"), b"newer").unwrap();
    assert_eq!(std::fs::read(folder.path().join("theirs")).unwrap(), b"whole");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn one_at_a_time_replaces_files_of_a_folder_and_a_file_keeps_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let held = LocalDisk.lock(folder.path()).unwrap();
    let other = std::fs::File::open(folder.path()).unwrap();
    assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
    drop(held);
    // A child of another test may hold it for a moment.
    other.lock().unwrap();
    drop(other);
    let target = folder.path().join("m.safetensors");
    std::fs::write(&target, "old").unwrap();
    std::fs::set_permissions(&target, Permissions::from_mode(0o640)).unwrap();
    disk::replace_by(&target, b"new").unwrap();
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn names_of_temporary_files_are_drawn_at_random() {
    let folder = tempfile::tempdir().unwrap();
    let made: Vec<_> = (0..4).map(|_| LocalDisk.create(folder.path(), 0o600).unwrap().0).collect();
    for (at, path) in made.iter().enumerate() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let drawn = name.strip_prefix(disk::TEMPORARY_PREFIX).unwrap();
        assert!(drawn.len() == 16 && u64::from_str_radix(drawn, 16).is_ok(), "{name}");
        // A count or the number of the process would make neighbours of them.
        assert!(made[..at].iter().all(|other| shared_beginning(other, path) < 12), "{made:?}");
    }
}

/// Characters that two names of files begin with.
fn shared_beginning(one: &Path, other: &Path) -> usize {
    let names = [one, other].map(|path| path.file_name().unwrap().to_str().unwrap());
    let names = names.map(|name| name.trim_start_matches(disk::TEMPORARY_PREFIX).chars());
    let [one, other] = names;
    one.zip(other).take_while(|(a, b)| a == b).count()
}

#[test]
fn only_regular_files_are_replaced_and_links_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("model-1.safetensors");
    let link = folder.path().join("current");
    std::fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(Target::follow(&link).unwrap().path, real.canonicalize().unwrap());
    assert!(Target::follow(folder.path()).is_err());
    assert!(Target::follow(Path::new("/dev/null")).is_err());
}

#[test]
fn a_link_to_a_file_that_is_not_there_yet_is_followed_too() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("models")).unwrap();
    // Two links, each relative to its own folder.
    std::os::unix::fs::symlink("models/current", folder.join("link")).unwrap();
    std::os::unix::fs::symlink("../models/m-2", folder.join("models/current")).unwrap();
    disk::replace_by(&folder.join("link"), b"new").unwrap();
    assert_eq!(std::fs::read(folder.join("models/m-2")).unwrap(), b"new");
    for link in ["link", "models/current"] {
        assert!(folder.join(link).symlink_metadata().unwrap().is_symlink(), "{link}");
    }
    disk::replace_by(&folder.join("link"), b"newer").unwrap();
    assert_eq!(std::fs::read(folder.join("models/m-2")).unwrap(), b"newer");

    std::os::unix::fs::symlink("circle", folder.join("circle")).unwrap();
    let refused = disk::replace_by(&folder.join("circle"), b"new").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()));
    std::os::unix::fs::symlink("absent/m", folder.join("nowhere")).unwrap();
    let refused = disk::replace_by(&folder.join("nowhere"), b"new").unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::NotFound);
}
