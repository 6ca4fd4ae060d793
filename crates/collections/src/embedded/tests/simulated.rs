//! A disk in memory whose every step can fail, and which can lose its power: synced data survives;
//! of the rest any sectors of any file, and the first changes of a folder's names up to any of
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};
use std::sync::{Arc, Barrier};

use cognate_testing::Chance;
use parking_lot::{Mutex, MutexGuard};

use crate::embedded::log::UNWHOLE;
use crate::embedded::storage::{Storage, Stored};

const SECTOR: usize = 64;

#[derive(Debug, Default, Clone)]
pub(super) struct Simulated {
    state: Arc<Mutex<State>>,
    /// For a test: the barrier at which the thread that makes an unfinished log waits twice.
    gate: Option<Arc<Barrier>>,
}

#[derive(Debug, Default)]
struct State {
    nodes: Vec<Node>,
    steps: usize,
    fails: std::ops::Range<usize>,
    /// The step before which the process is killed, and the state at that moment.
    dies: usize,
    dead: Option<Vec<Node>>,
    /// Files whose lock was released.
    unlocked: BTreeSet<usize>,
    /// Bytes of room left; `None` for any number.
    room: Option<usize>,
}

#[derive(Debug, Clone)]
enum Node {
    File { lasting: Vec<u8>, now: Vec<u8>, unsynced: Vec<Write> },
    Folder { lasting: Names, now: Names, unsynced: Vec<Naming> },
}

type Names = BTreeMap<String, usize>;

#[derive(Debug, Clone)]
enum Write {
    Bytes(usize, Vec<u8>),
    Length(usize),
}

#[derive(Debug, Clone)]
enum Naming {
    Add(String, usize),
    Remove(String),
    Move(String, String),
}

impl Naming {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Add(name, node) => drop(names.insert(name.clone(), *node)),
            Self::Remove(name) => drop(names.remove(name)),
            Self::Move(from, to) => {
                let node = names.remove(from).unwrap();
                names.insert(to.clone(), node);
            }
        }
    }
}

impl Write {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Bytes(offset, written) => {
                let end = offset + written.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset..end].copy_from_slice(written);
            }
            Self::Length(length) => bytes.resize(*length, 0),
        }
    }

    /// Applies the parts that a disk without power has written.
    fn apply_some(&self, bytes: &mut Vec<u8>, mut chance: impl FnMut() -> bool) {
        match self {
            Self::Bytes(offset, written) => {
                for (at, sector) in written.chunks(SECTOR).enumerate() {
                    if chance() {
                        Self::Bytes(offset + at * SECTOR, sector.to_vec()).apply(bytes);
                    }
                }
            }
            Self::Length(_) => {
                if chance() {
                    self.apply(bytes);
                }
            }
        }
    }
}

fn missing() -> io::Error {
    io::Error::from(io::ErrorKind::NotFound)
}

impl State {
    fn step(&mut self) -> io::Result<()> {
        self.steps += 1;
        if self.steps == self.dies {
            self.dead = Some(self.nodes.clone());
        }
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        if self.fails.contains(&self.steps) { Err(full()) } else { Ok(()) }
    }

    fn names(&mut self, node: usize) -> io::Result<(&mut Names, &mut Vec<Naming>)> {
        match &mut self.nodes[node] {
            Node::Folder { now, unsynced, .. } => Ok((now, unsynced)),
            Node::File { .. } => Err(io::Error::from(io::ErrorKind::NotADirectory)),
        }
    }

    fn node(&mut self, path: &Path) -> io::Result<usize> {
        let mut at = 0;
        for part in path.components() {
            let Component::Normal(name) = part else { continue };
            let name = name.to_str().unwrap();
            at = *self.names(at)?.0.get(name).ok_or_else(missing)?;
        }
        Ok(at)
    }

    fn place(&mut self, path: &Path) -> io::Result<(usize, String)> {
        let folder = self.node(path.parent().unwrap())?;
        Ok((folder, path.file_name().unwrap().to_str().unwrap().to_owned()))
    }

    fn rename(&mut self, folder: usize, naming: Naming) -> io::Result<()> {
        let (names, unsynced) = self.names(folder)?;
        naming.apply(names);
        unsynced.push(naming);
        Ok(())
    }

    fn free(&mut self, bytes: usize) {
        self.room = self.room.map(|room| room + bytes);
    }

    fn length(&self, node: usize) -> usize {
        match &self.nodes[node] {
            Node::File { now, .. } => now.len(),
            Node::Folder { .. } => 0,
        }
    }

    fn add(&mut self, path: &Path, node: Node) -> io::Result<usize> {
        let (folder, name) = self.place(path)?;
        let number = self.nodes.len();
        self.nodes.push(node);
        self.rename(folder, Naming::Add(name, number))?;
        Ok(number)
    }
}

impl Node {
    fn folder() -> Self {
        Self::Folder { lasting: Names::new(), now: Names::new(), unsynced: Vec::new() }
    }

    fn file() -> Self {
        Self::File { lasting: Vec::new(), now: Vec::new(), unsynced: Vec::new() }
    }
}

impl Simulated {
    pub(super) fn new() -> Self {
        let disk = Self::default();
        disk.state().nodes.push(Node::folder());
        disk
    }

    /// The same disk, with a barrier at which the thread that makes an unfinished log waits twice.
    pub(super) fn with_gate(&self, gate: &Arc<Barrier>) -> Self {
        Self { state: Arc::clone(&self.state), gate: Some(Arc::clone(gate)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn steps(&self) -> usize {
        self.state().steps
    }

    pub(super) fn fail(&self, steps: std::ops::Range<usize>) {
        let mut state = self.state();
        (state.steps, state.fails) = (0, steps);
    }

    pub(super) fn fill(&self, room: Option<usize>) {
        self.state().room = room;
    }

    /// Kills this process before this step, counted from 1: its later steps have no effect.
    pub(super) fn kill_at(&self, step: usize) {
        let mut state = self.state();
        (state.steps, state.dies, state.dead) = (0, step, None);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state().dead.is_some()
    }

    /// The disk as another process finds it after this process was killed.
    pub(super) fn killed(&self) -> Self {
        let mut state = self.state();
        let nodes = state.dead.take().unwrap_or_else(|| state.nodes.clone());
        drop(state);
        let state = Arc::new(Mutex::new(State { nodes, ..State::default() }));
        Self { state, gate: None }
    }

    /// The disk after a power failure; `chance` says of each sector whether it was written.
    pub(super) fn without_power(&self, mut chance: impl FnMut() -> bool) -> Self {
        let disk = self.killed();
        for node in &mut disk.state().nodes {
            match node {
                Node::File { lasting, now, unsynced } => {
                    for write in unsynced.drain(..) {
                        write.apply_some(lasting, &mut chance);
                    }
                    now.clone_from(lasting);
                }
                Node::Folder { lasting, now, unsynced } => {
                    // A journal has its entries in order.
                    for naming in unsynced.drain(..) {
                        if !chance() {
                            break;
                        }
                        naming.apply(lasting);
                    }
                    now.clone_from(lasting);
                }
            }
        }
        disk
    }

    /// The disks that may be found after a kill, and `seeds` of those after a power failure.
    pub(super) fn crashed(&self, seeds: u64) -> impl Iterator<Item = (String, Self)> {
        let without_power = (0..seeds).map(|seed| {
            let mut chance = Chance(seed);
            (format!("power {seed}"), self.without_power(|| chance.below(2) == 0))
        });
        std::iter::once(("killed".to_owned(), self.killed())).chain(without_power)
    }

    pub(super) fn is_unlocked(&self, path: &Path) -> bool {
        let mut state = self.state();
        state.node(path).is_ok_and(|node| state.unlocked.contains(&node))
    }

    pub(super) fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let mut state = self.state();
        let node = state.node(path).ok()?;
        let Node::File { now, .. } = &state.nodes[node] else { return None };
        Some(now.clone())
    }

    pub(super) fn set_bytes(&self, path: &Path, bytes: &[u8]) {
        let mut state = self.state();
        let node = state.node(path).unwrap();
        let (lasting, now) = (bytes.to_vec(), bytes.to_vec());
        state.nodes[node] = Node::File { lasting, now, unsynced: Vec::new() };
    }
}

impl Storage for Simulated {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        if state.node(path).is_err() {
            state.add(path, Node::folder())?;
        }
        drop(state);
        self.sync_folder(path.parent().unwrap())
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.step()?;
        let folder = state.node(folder)?;
        Ok(state.names(folder)?.0.keys().cloned().collect())
    }

    fn is_folder(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.state();
        state.step()?;
        let node = state.node(path)?;
        Ok(state.names(node).is_ok())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn Stored>> {
        let is_copy = path.extension().is_some_and(|extension| extension == UNWHOLE);
        if let Some(gate) = self.gate.as_ref().filter(|_| is_copy) {
            gate.wait();
            gate.wait();
        }
        let mut state = self.state();
        state.step()?;
        let node = state.add(path, Node::file())?;
        Ok(Arc::new(Open { disk: self.clone(), node }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn Stored>> {
        let mut state = self.state();
        state.step()?;
        let node = state.node(path)?;
        Ok(Arc::new(Open { disk: self.clone(), node }))
    }

    fn read(&self, path: &Path) -> io::Result<Arc<dyn Stored>> {
        self.open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        let ((folder, from), (other, to)) = (state.place(from)?, state.place(to)?);
        assert_eq!(folder, other, "nothing is moved from one folder to another");
        let known = *state.names(folder)?.0.get(&from).ok_or_else(missing)?;
        let taken = state.names(folder)?.0.get(&to).copied();
        if let Some(taken) = taken
            && (matches!(state.nodes[known], Node::Folder { .. })
                && !state.names(taken)?.0.is_empty())
        {
            return Err(io::Error::from(io::ErrorKind::DirectoryNotEmpty));
        }
        let freed = taken.map_or(0, |taken| state.length(taken));
        state.free(freed);
        state.rename(folder, Naming::Move(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        let (folder, name) = state.place(path)?;
        if let Some(node) = state.names(folder)?.0.get(&name).copied() {
            let freed = state.length(node);
            state.free(freed);
            return state.rename(folder, Naming::Remove(name));
        }
        Err(missing())
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        state.step()?;
        let folder = state.node(path)?;
        let names: Vec<String> = state.names(folder)?.0.keys().cloned().collect();
        for name in names {
            state.rename(folder, Naming::Remove(name))?;
        }
        let (above, name) = state.place(path)?;
        state.rename(above, Naming::Remove(name))
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let failed = state.step();
        let folder = state.node(path)?;
        if let Node::Folder { lasting, now, unsynced } = &mut state.nodes[folder]
            && failed.is_ok()
        {
            lasting.clone_from(now);
            unsynced.clear();
        }
        failed
    }
}

#[derive(Debug)]
struct Open {
    disk: Simulated,
    node: usize,
}

impl Open {
    /// Runs a step of the file; a failing step does half.
    fn with<T>(
        &self,
        step: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>, &mut Vec<Write>, bool) -> T,
    ) -> io::Result<T> {
        let mut state = self.disk.state();
        let failed = state.step();
        let Node::File { lasting, now, unsynced } = &mut state.nodes[self.node] else {
            return Err(missing());
        };
        let done = step(lasting, now, unsynced, failed.is_err());
        failed.map(|()| done)
    }
}

impl Stored for Open {
    fn touch(&self) -> io::Result<()> {
        Ok(())
    }

    fn unlock(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.step()?;
        state.unlocked.insert(self.node);
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        self.with(|_, now, _, _| now.len() as u64)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|_, now, _, _| {
            let rest = now.get(offset as usize..).unwrap_or_default();
            let read = rest.len().min(out.len());
            out[..read].copy_from_slice(&rest[..read]);
            read
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let grows = (offset as usize + bytes.len()).saturating_sub(state.length(self.node));
        let lacking = state.room.map_or(0, |room| grows.saturating_sub(room));
        state.room = state.room.map(|room| room.saturating_sub(grows));
        drop(state);
        let most = bytes.len() - lacking;
        self.with(|_, now, unsynced, fails| {
            let bytes = if fails { &bytes[..most / 2] } else { &bytes[..most] };
            let write = Write::Bytes(offset as usize, bytes.to_vec());
            write.apply(now);
            unsynced.push(write);
        })?;
        if lacking == 0 { Ok(()) } else { Err(io::Error::from(io::ErrorKind::StorageFull)) }
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        let freed = state.length(self.node).saturating_sub(length as usize);
        state.free(freed);
        drop(state);
        self.with(|_, now, unsynced, fails| {
            if !fails {
                let write = Write::Length(length as usize);
                write.apply(now);
                unsynced.push(write);
            }
        })
    }

    /// A failing sync forgets what it was to write, so that the next one has nothing to do: some
    /// systems behave so.
    fn sync(&self) -> io::Result<()> {
        self.with(|lasting, _, unsynced, fails| {
            for write in unsynced.drain(..).filter(|_| !fails) {
                write.apply(lasting);
            }
        })
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let mut state = self.disk.state();
        state.step()?;
        Ok(state.node(path).is_ok_and(|node| node == self.node))
    }
}
