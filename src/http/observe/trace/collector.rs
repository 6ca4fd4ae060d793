//! The client of a collector: one connection for each batch, over plain HTTP.
//!
//! The exporter's own clients need a runtime, which its thread does not have, or bring TLS, proxies
//! and cookies. The service has hyper anyway.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderValue, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

/// Timeout of a batch, the answer included.
const MAX: Duration = Duration::from_secs(1);
const ANSWER_BYTES: usize = 64 << 10;
/// Least time between two log lines about an unreachable collector.
const LOG_EVERY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Collector(Mutex<Lost>);

/// Spans lost since the last log line.
#[derive(Debug, Default)]
struct Lost {
    batches: u64,
    logged: Option<Instant>,
}

impl Lost {
    /// Counts a lost span; returns their number if it is time for a log line.
    fn another(&mut self) -> Option<u64> {
        self.batches = self.batches.saturating_add(1);
        if self.logged.is_some_and(|logged| logged.elapsed() < LOG_EVERY) {
            return None;
        }
        self.logged = Some(Instant::now());
        Some(std::mem::take(&mut self.batches))
    }
}

impl HttpClient for Collector {
    /// Completes before it returns: it is called on a thread that does nothing else.
    fn send_bytes<'a, 'sent>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sent>>
    where
        'a: 'sent,
        Self: 'sent,
    {
        let sent = send(request).and_then(|response| match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(format!("it answers {status}").into()),
        });
        if let Err(error) = &sent {
            let mut lost = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(batches) = lost.another() {
                tracing::warn!(%error, batches, "spans did not reach the collector");
            }
        }
        Box::pin(ready(sent))
    }
}

/// Sends one request. The runtime is made for it: a stored runtime must not be dropped within
/// another, and callers should not have to know that.
fn send(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // The timeout needs the runtime's clock, so it has to be made inside.
    let answer = runtime.block_on(async { timeout(MAX, exchange(request)).await });
    // A name lookup may still be running, which cannot be interrupted.
    runtime.shutdown_background();
    answer.unwrap_or_else(|_| Err("it took too long".into()))
}

async fn exchange(request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (mut parts, body) = request.into_parts();
    let authority = parts.uri.authority().ok_or("no host")?.clone();
    // Brackets around an IPv6 address are not part of it.
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await?;
    parts.headers.insert(header::HOST, HeaderValue::from_str(authority.as_str())?);
    parts.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    parts.uri = parts.uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let response = sender.send_request(Request::from_parts(parts, Full::new(body))).await?;
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES).collect().await?.to_bytes();
    Ok(Response::from_parts(parts, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_that_is_down_is_told_of_seldom() {
        let mut lost = Lost::default();
        assert_eq!(lost.another(), Some(1));
        assert_eq!((lost.another(), lost.another()), (None, None));
        lost.logged = Instant::now().checked_sub(LOG_EVERY);
        assert_eq!((lost.another(), lost.another()), (Some(3), None));
    }
}
