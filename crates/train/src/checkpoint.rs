//! The checkpoint of an unfinished run, stored beside its output. After a crash or a SIGKILL the
//! same command continues from it and produces the same bits.
//!
//! A checkpoint is a safetensors file. Its metadata holds the run's *identity* (settings and
//! digests of the input files, as JSON), its *position* (the epoch and step reached, as JSON) and a
//! digest of the whole file; its tensors are bytes that only the run which wrote them can
//! interpret. The file is always replaced whole, so a crash leaves either the old or the new state,
//! never a mixture.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cognate::model::disk;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Result, TrainError};

#[derive(Debug, Clone)]
pub struct Checkpoint {
    path: PathBuf,
    identity: String,
}

#[derive(Debug)]
pub struct State<P> {
    pub position: P,
    pub tables: BTreeMap<String, Vec<u8>>,
}

impl Checkpoint {
    /// The checkpoint of a starting run. `identity` holds everything that decides the outcome: two
    /// runs with the same identity produce the same bits. `restart` removes an existing file.
    pub fn begin(path: &Path, identity: &impl Serialize, restart: bool) -> Result<Self> {
        let checkpoint = Self { path: path.to_owned(), identity: json(path, identity)? };
        if restart {
            checkpoint.remove()?;
        }
        Ok(checkpoint)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn save<P: Serialize>(&self, position: &P, tables: &[(&str, &[u8])]) -> Result<()> {
        let position = json(&self.path, position)?;
        let digest = digest(&self.identity, &position, tables.to_vec());
        // safetensors takes any map type; its support for the standard library's is a feature.
        let metadata = [
            ("identity".to_owned(), self.identity.clone()),
            ("position".to_owned(), position),
            ("digest".to_owned(), digest),
        ]
        .into_iter()
        .collect();
        let mut views = Vec::with_capacity(tables.len());
        for (name, table) in tables {
            let view = TensorView::new(Dtype::U8, vec![table.len()], table);
            views.push((*name, view.map_err(|error| self.problem(error.to_string()))?));
        }
        let bytes = safetensors::serialize(views, Some(metadata))
            .map_err(|error| self.problem(error.to_string()))?;
        disk::replace_by(&self.path, &bytes).map_err(|source| self.unwritten(source))
    }

    /// Reads the state that an earlier run with the same identity saved, if there is one.
    pub fn load<P: DeserializeOwned>(&self) -> Result<Option<State<P>>> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.problem(error.to_string())),
        };
        let damaged = |what: String| self.problem(format!("damaged ({what}); remove it"));
        let (_, header) =
            SafeTensors::read_metadata(&bytes).map_err(|error| damaged(error.to_string()))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let field = |key: &str| metadata.get(key).ok_or_else(|| damaged(format!("no {key}")));
        let (identity, position) = (field("identity")?, field("position")?);
        if *identity != self.identity {
            return Err(self.problem(
                "the state of a run with other settings, texts or vectors; add --restart to begin \
                 anew, or name another file with --checkpoint"
                    .to_owned(),
            ));
        }
        let found = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
        let mut tables = BTreeMap::new();
        for (name, view) in found.tensors() {
            tables.insert(name, view.data().to_vec());
        }
        let views = tables.iter().map(|(name, table)| (name.as_str(), table.as_slice()));
        if digest(identity, position, views.collect()) != *field("digest")? {
            return Err(damaged("its digest is another".to_owned()));
        }
        let position =
            serde_json::from_str(position).map_err(|error| damaged(error.to_string()))?;
        Ok(Some(State { position, tables }))
    }

    pub fn remove(&self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(self.unwritten(error))
            }
            _ => Ok(()),
        }
    }

    pub fn problem(&self, problem: String) -> TrainError {
        TrainError::Checkpoint { path: self.path.clone(), problem }
    }

    fn unwritten(&self, source: std::io::Error) -> TrainError {
        TrainError::Write { path: self.path.clone(), source }
    }
}

/// Default path of the checkpoint for a run that writes `output`.
pub fn beside(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".checkpoint");
    name.into()
}

fn json(path: &Path, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| TrainError::Checkpoint {
        path: path.to_owned(),
        problem: error.to_string(),
    })
}

/// The digest of the file's contents, with the tables in the order of their names.
fn digest(identity: &str, position: &str, mut tables: Vec<(&str, &[u8])>) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(identity.as_bytes()).update(&[0]).update(position.as_bytes());
    tables.sort_unstable_by_key(|(name, _)| *name);
    for (name, table) in tables {
        hasher.update(&[0]).update(name.as_bytes()).update(blake3::hash(table).as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(folder: &Path) -> Checkpoint {
        let checkpoint = Checkpoint::begin(&folder.join("run"), &("settings", 7), false).unwrap();
        checkpoint.save(&(3, 14), &[("rows", b"firstsecond"), ("none", b"")]).unwrap();
        checkpoint
    }

    #[test]
    fn what_was_saved_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = saved(folder.path());
        let state = checkpoint.load::<(u32, u32)>().unwrap().unwrap();
        assert_eq!(state.position, (3, 14));
        assert_eq!(state.tables["rows"], b"firstsecond");
        assert!(state.tables["none"].is_empty());
        checkpoint.remove().unwrap();
        assert!(checkpoint.load::<(u32, u32)>().unwrap().is_none());
        checkpoint.remove().unwrap();
    }

    #[test]
    fn the_state_of_another_run_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        saved(folder.path());
        let other = Checkpoint::begin(&folder.path().join("run"), &("settings", 8), false).unwrap();
        let refusal = other.load::<(u32, u32)>().unwrap_err().to_string();
        assert!(refusal.contains("--restart"), "{refusal}");
    }

    #[test]
    fn no_damaged_byte_and_no_beginning_of_a_file_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let checkpoint = saved(folder.path());
        let whole = std::fs::read(checkpoint.path()).unwrap();
        for at in 0..whole.len() {
            let mut turned = whole.clone();
            turned[at] ^= 1;
            std::fs::write(checkpoint.path(), &turned).unwrap();
            let found = checkpoint.load::<(u32, u32)>();
            // Only a change to the header's padding spaces goes unnoticed, and it is harmless.
            assert!(found.is_err() || whole[at] == b' ', "byte {at}");
            std::fs::write(checkpoint.path(), &whole[..at]).unwrap();
            assert!(checkpoint.load::<(u32, u32)>().is_err(), "cut at {at}");
        }
    }
}
