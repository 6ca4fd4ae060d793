//! The collections of the settings: in a database, in a folder, along with the process that writes one,
//! or in memory alone.

use std::path::Path;
#[cfg(feature = "postgres")]
use std::time::Duration;

#[cfg(feature = "postgres")]
use cognate_collections::PostgresHome;
use cognate_collections::{CollectionError, Cut, EmbeddedHome, Home, Limits, ReplicaHome, Totals};

use crate::http::settings::Settings;

/// Opens the collections of the settings. A line in the log tells of each end of a log that a crash had
/// left, and how much there is.
pub(in crate::http) fn open(settings: &Settings) -> Result<Box<dyn Home>, CollectionError> {
    let limits = settings.collection_limits();
    let home: Box<dyn Home> = match (&settings.postgres, &settings.replica_of, &settings.data) {
        (Some(_), _, _) => open_database(settings)?,
        (None, Some(folder), _) => Box::new(open_replica(folder, limits)?),
        (None, None, None) => return Ok(Box::new(EmbeddedHome::in_memory(limits))),
        (None, None, Some(folder)) => {
            let (home, cuts) = EmbeddedHome::open(folder, limits)?;
            for Cut { path, bytes, kept } in cuts {
                let (log, kept) = (path.display(), kept.display());
                tracing::warn!(
                    %log, bytes, %kept,
                    "the end of a collection's log was not whole, as a crash leaves it; it was cut off"
                );
            }
            Box::new(home)
        }
    };
    let Totals { collections, items, .. } = home.totals(cognate_collections::now());
    tracing::info!(collections, items, "collections opened");
    Ok(home)
}

/// Collections that are read on as they are written. A line in the log tells of each that cannot be.
fn open_replica(folder: &Path, limits: Limits) -> Result<ReplicaHome, CollectionError> {
    let home = ReplicaHome::open(folder, limits)?.watched(|error| {
        tracing::error!(%error, "a collection cannot be read on; it is shown as it was before");
    });
    home.map_err(|source| CollectionError::Read { path: folder.to_owned(), source })
}

#[cfg(feature = "postgres")]
fn open_database(settings: &Settings) -> Result<Box<dyn Home>, CollectionError> {
    let url = settings.postgres.as_ref().map_or("", |url| url.secret());
    let patience = Duration::from_millis(settings.compute_deadline_ms);
    Ok(Box::new(PostgresHome::open(url, settings.collection_limits(), patience)?))
}

/// The settings were checked, so that nobody comes here.
#[cfg(not(feature = "postgres"))]
fn open_database(_: &Settings) -> Result<Box<dyn Home>, CollectionError> {
    Err(CollectionError::NotSetUp { problem: cognate_collections::NO_POSTGRES.to_owned() })
}
