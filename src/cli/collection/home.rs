//! Where collections are: a folder or a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "postgres")]
use std::time::Duration;

use clap::Args;
use cognate::engine::TextLimits;
#[cfg(feature = "postgres")]
use cognate_collections::PostgresHome;
use cognate_collections::{Collection, Cut, EmbeddedHome, Home, Limits, ReplicaHome};

use crate::cli::{Failure, usage};

/// No limits: only the service limits collections.
pub(super) const LIMITS: Limits = Limits {
    collections: usize::MAX,
    items: usize::MAX,
    bytes: usize::MAX,
    text_bytes: TextLimits::DEFAULT.bytes,
};
#[cfg(feature = "postgres")]
const PATIENCE: Duration = Duration::from_secs(600);

/// The folder of collections, to which one process writes at a time, or the database.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct HomeArgs {
    /// Folder of the collections, as given to `cognate serve --data`
    #[arg(long, value_name = "FOLDER")]
    pub(super) data: Option<PathBuf>,
    /// Or the URL of a PostgreSQL database that they are kept in
    #[arg(long, value_name = "URL", env = "COGNATE_POSTGRES", hide_env_values = true)]
    postgres: Option<String>,
}

/// A folder of collections.
#[derive(Debug, Args)]
pub(super) struct FolderArgs {
    /// Folder of the collections, as given to `cognate serve --data`
    #[arg(long, value_name = "FOLDER")]
    pub(super) data: PathBuf,
}

impl FolderArgs {
    /// Its collections; the folder must exist.
    pub(super) fn open(&self) -> Result<EmbeddedHome, Failure> {
        open_folder(self.folder()?)
    }

    pub(super) fn folder(&self) -> Result<&Path, Failure> {
        let wrong = || usage(format!("{} is not a folder", self.data.display()));
        self.data.is_dir().then_some(&*self.data).ok_or_else(wrong)
    }
}

impl HomeArgs {
    /// The collections; a folder must exist.
    pub(super) fn open(&self) -> Result<Box<dyn Home>, Failure> {
        match (&self.postgres, &self.data) {
            (None, Some(data)) => Ok(Box::new(FolderArgs { data: data.clone() }.open()?)),
            (postgres, _) => open_database(postgres.as_deref().unwrap_or_default()),
        }
    }

    /// The collections, read-only: a service may have the folder open.
    pub(super) fn read(&self) -> Result<Box<dyn Home>, Failure> {
        match (&self.postgres, &self.data) {
            (None, Some(folder)) if folder.is_dir() => {
                Ok(Box::new(ReplicaHome::open_whole(folder, LIMITS)?))
            }
            _ => self.open(),
        }
    }

    /// The collections; a missing folder is made.
    pub(super) fn make(&self) -> Result<Box<dyn Home>, Failure> {
        match &self.data {
            Some(folder) if self.postgres.is_none() => Ok(Box::new(open_folder(folder)?)),
            _ => self.open(),
        }
    }
}

fn open_folder(folder: &Path) -> Result<EmbeddedHome, Failure> {
    Ok(told(EmbeddedHome::open(folder, LIMITS)?))
}

/// Reports what was cut off logs when a folder was opened.
pub(super) fn told<T>((opened, cuts): (T, Vec<Cut>)) -> T {
    for cut in cuts {
        let (path, bytes) = (cut.path.display(), cut.bytes);
        let outcome = match cut.kept {
            Some(kept) => format!("they were cut off, to {}", kept.display()),
            None => "they stay there, since the disk has no room to keep them aside".to_owned(),
        };
        eprintln!("{path}: the last {bytes} bytes were not whole; {outcome}");
    }
    opened
}

#[cfg(feature = "postgres")]
fn open_database(url: &str) -> Result<Box<dyn Home>, Failure> {
    Ok(Box::new(database(url)?))
}

#[cfg(feature = "postgres")]
pub(super) fn database(url: &str) -> Result<PostgresHome, Failure> {
    Ok(PostgresHome::open(url, LIMITS, PATIENCE)?)
}

#[cfg(not(feature = "postgres"))]
fn open_database(_: &str) -> Result<Box<dyn Home>, Failure> {
    Err(usage(cognate_collections::NO_POSTGRES))
}

/// The collection of this name, which must exist.
pub(super) fn named(home: &dyn Home, name: &str) -> Result<Arc<dyn Collection>, Failure> {
    let all = home.all()?;
    let found = all.iter().find(|one| one.name() == name);
    let mut damaged = home.damaged().into_iter();
    if let Some((_, problem)) = damaged.find(|(damaged, _)| damaged == name) {
        return Err(anyhow::anyhow!(problem).into());
    }
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| one.name()).collect();
        usage(format!("there is no collection `{name}`; there are: {}", names.join(", ")))
    })
}
