//! `POST /-/backup`: copies the collections into a folder that a setting names, while they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use cognate_collections::{CollectionError, back_up_among, remove_older};
use serde::Serialize;
use tokio::time::{Instant, timeout_at};
use utoipa::ToSchema;

use crate::http::app::App;
use crate::http::error::{ApiError, Code, Result};
use crate::http::middleware::authorize;
use crate::http::openapi::refusals::refusals;
use crate::http::work::file_threads::spawn_blocking;
use crate::http::work::pool::CancelOnDrop;

/// A copy of the collections.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Backup {
    /// The folder of the copy, within the folder of the setting `backups`: the time at which it was begun.
    name: String,
    /// How many collections it has.
    collections: usize,
    /// The size of their logs.
    bytes: u64,
    /// The collections that the copy lacks, because their logs cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

refusals!(
    BackupRefusals: &[
        Code::Forbidden, Code::NotFound, Code::NotWritten, Code::Overloaded, Code::DeadlineExceeded
    ]
);

/// Copies the collections of this server into its folder of copies.
///
/// The copy has all that was acknowledged before the request, is read back, synced, and gets its name
/// last: a folder that `cognate serve --data` serves. It is stopped and removed when its client goes away
/// or the setting `backup_timeout_s` is over; one is made at a time. Needs a key of the scope `admin`;
/// where no keys are set, it must come from a program of this machine.
#[utoipa::path(
    post,
    path = "/-/backup",
    tag = "operate",
    responses((status = 200, description = "The copy is there", body = Backup), BackupRefusals),
)]
pub(crate) async fn backup(State(app): State<Arc<App>>, request: Request) -> Result<Json<Backup>> {
    authorize::check_admin(&request)?;
    let settings = &app.settings;
    let (Some(data), Some(copies)) = (settings.folder().cloned(), settings.backups.clone()) else {
        let detail = "this server makes no copies: the setting `backups` names no folder";
        return Err(ApiError::new(Code::NotFound, detail));
    };
    let Ok(one) = Arc::clone(&app.backing_up).try_lock_owned() else {
        let detail = "another copy is being made; ask again";
        return Err(ApiError { retry_after_s: Some(5), ..ApiError::new(Code::Overloaded, detail) });
    };
    let (now, stopped) = (cognate_collections::now(), Arc::new(AtomicBool::new(false)));
    // When nobody waits for the copy any more.
    let _stop = CancelOnDrop(Arc::clone(&stopped));
    let (asked, folder) = (Arc::clone(&app), copies.clone());
    let work = spawn_blocking(move || {
        let (name, done) = back_up_among(&data, &folder, now, &stopped)?;
        if done.left_out.is_empty() {
            asked.backed_up.fetch_max(now, Ordering::Relaxed);
        }
        // No other copy until the disk answers, though the request may be gone.
        Ok::<_, CollectionError>((name, done, one))
    });
    let limit_s = settings.backup_timeout_s;
    let deadline = Instant::now() + Duration::from_secs(limit_s);
    let made = timeout_at(deadline, work).await.map_err(|_| {
        let detail = format!("the copy takes longer than {limit_s} s (setting `backup_timeout_s`)");
        ApiError::new(Code::DeadlineExceeded, detail)
    })?;
    let made = made.map_err(|error| ApiError::internal(&error.to_string()))?;
    let (name, done, one) = made.map_err(|error| {
        let detail = "the copy could not be made; the server's log says why under this request id";
        let cause = Some(error.to_string().into());
        ApiError { cause, ..ApiError::new(Code::NotWritten, detail) }
    })?;
    for (collection, problem) in &done.left_out {
        tracing::error!(
            collection,
            problem,
            "a collection is not in the copy: its log cannot be read"
        );
    }
    // A copy that lacks a collection replaces none that may have it.
    if let Some(keep) = settings.backups_kept.filter(|_| done.left_out.is_empty()) {
        let newest = name.clone();
        let removing = spawn_blocking(move || {
            let _one = one;
            if let Err(error) = remove_older(&copies, &newest, keep) {
                tracing::warn!(%error, "an older copy could not be removed");
            }
        });
        // The copy is there, however long the older ones take.
        let _ = timeout_at(deadline, removing).await;
    }
    let left_out = done.left_out.into_iter().map(|(collection, _)| collection).collect();
    Ok(Json(Backup { name, collections: done.collections, bytes: done.bytes, left_out }))
}
