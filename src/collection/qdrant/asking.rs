//! A server that is asked, and asked again where it may pass. The client is asynchronous and its callers are
//! not: whoever asks waits, so no thread of a runtime may be one of them.

use std::fmt;
use std::io;
use std::time::Duration;

use qdrant_client::Qdrant;
use qdrant_client::QdrantError;
use qdrant_client::qdrant::PointsOperationResponse;
use qdrant_client::qdrant::UpdateStatus;
use tokio::runtime::Builder;
use tokio::runtime::Runtime;

use crate::collection::CollectionError;
use crate::collection::qdrant::place::Place;
use crate::collection::qdrant::problem;

/// How often what may pass is asked.
const ATTEMPTS: u32 = 3;
/// How long to wait before it is asked again.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// Connections to the server, each of which takes many questions at a time.
const CONNECTIONS: usize = 4;

/// A server that is asked.
pub(super) struct Asking {
    client: Qdrant,
    /// Nothing once this is dropped.
    runtime: Option<Runtime>,
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The client has a key.
        f.write_str("Asking")
    }
}

impl Asking {
    /// The server of a URL, whose answers may each take so long. It is not asked yet.
    pub(super) fn new(url: &str, patience: Duration) -> Result<Self, CollectionError> {
        let Place { uri, key } = Place::of(url)?;
        let mut config = Qdrant::from_url(&uri)
            .api_key(key)
            .timeout(patience)
            .connect_timeout(CONNECT.min(patience))
            // It would be told on standard output.
            .skip_compatibility_check();
        config.set_pool_size(CONNECTIONS);
        let client = config.build().map_err(|error| problem::of(&error))?;
        // Whoever asks runs the question; this thread reads from the connections meanwhile.
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("qdrant")
            .enable_all()
            .build()
            .map_err(|error| no_runtime(&error))?;
        Ok(Self { client, runtime: Some(runtime) })
    }

    /// Asks, and asks again what may pass: nothing is asked here that may not be done twice.
    pub(super) fn ask<T>(
        &self,
        question: impl AsyncFn(&Qdrant) -> Result<T, QdrantError>,
    ) -> Result<T, CollectionError> {
        let mut attempt = 1;
        loop {
            match self.ask_once(&question) {
                Ok(answer) => return Ok(answer),
                Err(CollectionError::Unreachable { .. }) if attempt < ATTEMPTS => {
                    std::thread::sleep(PAUSE * attempt);
                }
                Err(error) => return Err(error),
            }
            attempt += 1;
        }
    }

    /// Asks for a change, which is done once this comes back well.
    pub(super) fn change(
        &self,
        question: impl AsyncFn(&Qdrant) -> Result<PointsOperationResponse, QdrantError>,
    ) -> Result<(), CollectionError> {
        let status = self.ask(question)?.result.map_or(0, |result| result.status);
        if status == i32::from(UpdateStatus::Completed) {
            return Ok(());
        }
        // It may have been taken and not be done yet.
        let problem = format!("a change was not completed in time (status {status})");
        Err(CollectionError::Slow { problem })
    }

    fn ask_once<T>(
        &self,
        question: impl AsyncFn(&Qdrant) -> Result<T, QdrantError>,
    ) -> Result<T, CollectionError> {
        let Some(runtime) = &self.runtime else {
            return Err(no_runtime(&io::Error::other("it has ended")));
        };
        runtime.block_on(question(&self.client)).map_err(|error| problem::of(&error))
    }
}

fn no_runtime(error: &io::Error) -> CollectionError {
    CollectionError::Unreachable { problem: format!("no thread for its connections: {error}") }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // Its threads end by themselves: whoever drops this may be a thread that must not wait.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
