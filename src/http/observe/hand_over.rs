//! Keeps a request open until the stream that answers it ends, not only until the head of the answer.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::StatusCode;
use tokio::sync::oneshot;

use crate::http::observe::request_log::RequestRecord;

type Opened = (RequestRecord, StatusCode);

/// Where a stream gets its request from: an extension of the answer, which states that the request
/// ends with the stream, not with the answer's head.
#[derive(Debug, Clone)]
pub(crate) struct HandOver(Arc<Mutex<Option<oneshot::Sender<Opened>>>>);

impl HandOver {
    /// A sender and a receiver for a request that is handed over later.
    pub(crate) fn new() -> (Self, HandedOver) {
        let (sender, receiver) = oneshot::channel();
        (Self(Arc::new(Mutex::new(Some(sender)))), HandedOver { receiver, request: None })
    }

    pub(crate) fn give(&self, request: Opened) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // A stream that failed meanwhile has no receiver.
            let _ = sender.send(request);
        }
    }
}

#[derive(Debug)]
pub(crate) struct HandedOver {
    receiver: oneshot::Receiver<Opened>,
    request: Option<Opened>,
}

impl HandedOver {
    /// Waits until the request is here, or ended without an answer.
    pub(crate) async fn known(&mut self) {
        if self.request.is_none() {
            self.request = (&mut self.receiver).await.ok();
        }
    }

    pub(crate) fn take(&mut self) -> Option<Opened> {
        self.request.take().or_else(|| self.receiver.try_recv().ok())
    }
}
