//! `GET /collections/{name}/events/stream`: alerts of a collection's events as they arise, as
//! server-sent events or as lines.
//!
//! Alerts are read from the collection when they are sent, as any question is computed: on the
//! pool, with units, a deadline and the client's share. While a client does not read, nothing more
//! is read for it, so that it takes only the memory of some alerts, which is charged. A client that
//! does not read for long is disconnected with the position to continue at.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use cognate_collections::{
    Alert, AlertKind, AlertReader, AlertRule, Cancellation, Collection, CollectionError, Start,
};
use cognate_files::instant;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use utoipa::IntoParams;

use crate::http::api::collections::call::{Call, Named};
use crate::http::api::collections::events::hundredths;
use crate::http::api::stream::Record;
use crate::http::api::ways::Way;
use crate::http::error::{ApiError, Code, Detail, Result};
use crate::http::observe::hand_over::HandOver;
use crate::http::observe::streams::Outcome;
use crate::http::openapi::refusals::{COLLECTION, refusals};
use crate::http::request::fields::ModelName;
use crate::http::request::json;
use crate::http::request::query::Delivery;
use crate::http::work::spool::Writer;
use crate::http::work::streams::Place;
use crate::http::work::unsent::{Answer, Charge, Unsent};

/// Default number of items at which an event is reported as begun.
const MIN: u64 = 2;
/// Default numbers of items at which an event is reported as grown.
const GROWN: [u64; 3] = [10, 100, 1000];
const MAX_GROWN: usize = 16;
/// Pause between reads of a collection.
const POLL: Duration = Duration::from_millis(200);
/// Pause between reads of a collection in a database.
const REMOTE_POLL: Duration = Duration::from_secs(1);
/// Longest time without a sign of life.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Unread bytes of a client up to which more is read for it.
const MAX_WAITING: u64 = 64 << 10;
/// Bytes of an alert besides its text.
const ENTRY_BYTES: usize = 256;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AlertParameters {
    /// How many items an event has when its `begun` is sent; default: 2. With 1 each text that begins an
    /// event is reported.
    #[param(minimum = 1, maximum = 18446744073709551615_u64)]
    least: Option<u64>,
    /// How many items an event has when its `grown` is sent, such as `10,50,100`; default: `10,100,1000`,
    /// at most 16 numbers.
    #[param(pattern = "^[1-9][0-9]{0,18}(,[1-9][0-9]{0,18}){0,15}$")]
    grown: Option<String>,
    /// Which alerts are sent, such as `begun,bursting`: some of `begun`, `grown`, `bursting` and `merged`;
    /// default: all.
    #[param(pattern = "^(begun|grown|bursting|merged)(,(begun|grown|bursting|merged))*$")]
    kinds: Option<String>,
    /// Alerts of events with more chatter than this, from 0 to 1, are left out. Merges are always reported.
    #[param(minimum = 0, maximum = 1)]
    chatter: Option<f64>,
    /// The `id` of the alert after which to go on, where no header `Last-Event-ID` says it. Without a value
    /// the stream begins with all that the collection has; without either, with what comes from now on.
    after: Option<String>,
    /// `false`: the stream ends with what there is now.
    follow: Option<bool>,
    /// The model that measures chatter; default: the server's first.
    #[param(value_type = Option<ModelName<'_>>)]
    model: Option<String>,
}

impl AlertParameters {
    fn rule(&self) -> Result<AlertRule> {
        let least = self.least.unwrap_or(MIN);
        if least == 0 {
            return Err(ApiError::at(Code::OutOfRange, "/least", "expected a number from 1"));
        }
        let grown = self.grown.as_ref().map_or(Ok(GROWN.to_vec()), |written| {
            let grown: Result<Vec<u64>, _> = written.split(',').map(str::parse).collect();
            let grown = grown.ok().filter(|grown| grown.len() <= MAX_GROWN && !grown.contains(&0));
            grown.ok_or_else(|| {
                let detail = "expected at most 16 whole numbers from 1 with commas between them";
                ApiError::at(Code::InvalidField, "/grown", detail)
            })
        })?;
        let kind = |name| AlertKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kinds = self.kinds.as_ref().map_or(Some(AlertKind::ALL.to_vec()), |written| {
            written.split(',').map(kind).collect()
        });
        let kinds = kinds.ok_or_else(|| {
            let detail = "expected some of begun, grown, bursting, merged with commas between them";
            ApiError::at(Code::InvalidField, "/kinds", detail)
        })?;
        if self.chatter.is_some_and(|most| !(0.0..=1.0).contains(&most)) {
            return Err(ApiError::at(
                Code::OutOfRange,
                "/chatter",
                "expected a number from 0 to 1",
            ));
        }
        Ok(AlertRule { least, grown, kinds, chatter: self.chatter })
    }

    fn start(&self, headers: &HeaderMap) -> Result<Start> {
        let last = headers.get("last-event-id").map(|last| std::str::from_utf8(last.as_bytes()));
        let after = match last {
            Some(last) => Some(last.unwrap_or("no text")),
            None => self.after.as_deref(),
        };
        match after {
            None => Ok(Start::Now),
            Some("") => Ok(Start::First),
            Some(after) => after.parse().map(Start::After).map_err(|()| {
                let detail = "expected the `id` of an alert in `after` or `Last-Event-ID`";
                ApiError::at(Code::InvalidField, "/after", detail)
            }),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    ServerSent,
    Lines,
}

impl Form {
    /// Chooses server-sent events if the client accepts them, else lines.
    fn new(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT).iter();
        let sent = |value: &HeaderValue| {
            value.to_str().is_ok_and(|value| value.contains("text/event-stream"))
        };
        if accepted.into_iter().any(sent) { Self::ServerSent } else { Self::Lines }
    }

    fn media_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::ServerSent => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        })
    }

    fn write(self, out: &mut Answer<'_>, entry: &Entry<'_>) -> Result<()> {
        let mut head = String::new();
        if self == Self::ServerSent {
            // Neither kinds nor names of items have control characters.
            head = format!("event: {}\nid: {}\ndata: ", entry.kind, entry.id);
        }
        out.write_bytes(head.as_bytes())?;
        out.write_json(entry)?;
        out.write_bytes(match self {
            Self::ServerSent => b"\n\n",
            Self::Lines => b"\n",
        })
    }

    /// A short entry on its own.
    fn short(self, unsent: &Unsent, entry: &Entry<'_>) -> Result<Bytes> {
        let mut out = unsent.answer(0)?;
        self.write(&mut out, entry)?;
        Ok(out.into_bytes())
    }

    fn heartbeat(self) -> Bytes {
        Bytes::from_static(match self {
            Self::ServerSent => b":\n\n",
            Self::Lines => b"\n",
        })
    }
}

#[derive(Debug, Default, Serialize)]
struct Entry<'a> {
    kind: &'a str,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// The item that caused the alert, with its time and text.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    /// The share of chatter in the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    chatter: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    from: &'a [Box<str>],
    /// Whether alerts may be missing before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<bool>,
    /// Why the stream ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Code>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a Detail>,
}

impl<'a> Entry<'a> {
    fn new(alert: &'a Alert) -> Self {
        let item = alert.item.as_deref();
        Self {
            kind: alert.kind.name(),
            id: alert.cursor.to_string(),
            event: Some(&alert.event),
            size: Some(alert.size),
            item: item.map(|item| &*item.id),
            time: item.map(|item| instant::written(item.time)),
            text: item.map(|item| &*item.text),
            chatter: alert.chatter.map(hundredths),
            from: &alert.from,
            ..Self::default()
        }
    }
}

refusals!(StreamRefusals: &[Code::InvalidField, Code::OutOfRange, Code::UnknownModel], COLLECTION);

/// Streams alerts when events of a collection begin, grow, burst or merge.
///
/// Server-sent events for `Accept: text/event-stream`, else a line of JSON each. A client that comes back
/// with the last `id` that it got gets the alerts after it, also after a restart of the server.
#[utoipa::path(
    get,
    path = "/collections/{name}/events/stream",
    tag = "collections",
    operation_id = "alerts",
    params(
        ("name" = String, Path, description = "The collection"),
        ("Last-Event-ID" = Option<String>, Header, description = "The `id` of the alert after which to go on"),
        AlertParameters,
    ),
    responses(
        (status = 200, description = "Alerts", content(
            (String = "text/event-stream"),
            (String = "application/x-ndjson"),
        )),
        StreamRefusals,
    ),
)]
pub(crate) async fn stream(
    Named { call, collection, .. }: Named,
    request: Request,
) -> Result<Response> {
    let asked: AlertParameters = json::read_query(request.uri())?;
    let Call { app, caller, .. } = &call;
    let (rule, start) = (asked.rule()?, asked.start(request.headers())?);
    app.models().choose(asked.model.as_deref())?;
    let form = Form::new(request.headers());
    let delivery = request.extensions().get::<Arc<Delivery>>().cloned().unwrap_or_default();
    let place = app.streams.take(&caller.client)?;
    let memory = app.unsent.of(&caller.client).work(AlertReader::MAX_BYTES)?;
    let of = Arc::clone(&collection);
    let reader = call
        .again()
        .look_up(move |_| Ok(AlertReader::open(&*of, rule, start, cognate_collections::now())?));
    let reader = reader.await?;
    let patience = Duration::from_secs(app.settings.write_timeout_s);
    let (writer, unread) = app.spools.open(&app.unsent.of(&caller.client), patience);
    let (hand_over, handed_over) = HandOver::new();
    let mut response = Response::new(Body::from_stream(unread.into_stream()));
    response.headers_mut().insert(header::CONTENT_TYPE, form.media_type());
    response.extensions_mut().insert(hand_over);
    Way::Stream.mark(&mut response);
    let record = Record::new(Arc::clone(app), handed_over);
    let follows = asked.follow.unwrap_or(true);
    let (model, sent) = (asked.model, Instant::now());
    let stream =
        AlertStream { call, collection, reader, model, form, follows, sent, _memory: memory };
    tokio::spawn(stream.run(writer, place, delivery, record));
    Ok(response)
}

struct AlertStream {
    call: Call,
    collection: Arc<dyn Collection>,
    reader: AlertReader,
    /// The model that estimates chatter, looked up by name each time, as it may be reloaded.
    model: Option<String>,
    form: Form,
    follows: bool,
    /// When the client was last sent anything.
    sent: Instant,
    _memory: Charge,
}

/// The outcome of a stream for counters, and the error in its last line.
type End = (Outcome, Option<ApiError>);

impl AlertStream {
    async fn run(
        mut self,
        mut writer: Writer,
        mut place: Place,
        delivery: Arc<Delivery>,
        mut record: Record,
    ) {
        let told = self.tell(&writer, &mut place, &mut record.end.items).await;
        let (mut outcome, error) = match told {
            Ok(()) => (Outcome::Complete, None),
            Err(end) => end,
        };
        let mut last = Bytes::new();
        if let Some(error) = error {
            self.call.app.metrics.refused(&error);
            let id = self.reader.cursor().to_string();
            let (code, detail) = (Some(error.code), Some(&error.detail));
            let entry = Entry { kind: "end", id, code, detail, ..Entry::default() };
            last = self.form.short(&self.call.app.unsent, &entry).unwrap_or_default();
        }
        drop((self, place));
        delivery.set_answer_bytes(writer.waiting());
        writer.finish(last);
        writer.closed().await;
        if writer.has_failed() {
            outcome = Outcome::Failed;
        } else if outcome == Outcome::Complete && !writer.was_read() {
            outcome = match delivery.was_given_up() {
                true => Outcome::SlowReader,
                false => Outcome::ClientGone,
            };
        }
        record.end.answer_bytes = writer.taken();
        record.ended(outcome).await;
    }

    /// Sends alerts until the client goes away or stops reading, or the service stops.
    async fn tell(
        &mut self,
        writer: &Writer,
        place: &mut Place,
        items: &mut u64,
    ) -> Result<(), End> {
        let patience = Duration::from_secs(self.call.app.settings.write_timeout_s);
        let poll = if self.call.app.collections.is_remote() { REMOTE_POLL } else { POLL };
        let (id, gap) = (self.reader.cursor().to_string(), self.reader.has_gap().then_some(true));
        let open = Entry { kind: "open", id, gap, ..Entry::default() };
        let open = self.form.short(&self.call.app.unsent, &open).map_err(refused)?;
        self.push(writer, open)?;
        // When the client last read, and when the server last finished.
        let (mut read, mut done, mut waited) = (self.sent, self.sent, 0);
        let access = Arc::clone(&self.call.app.access());
        loop {
            // A key may have been revoked: a client that reconnects must send it again.
            if !Arc::ptr_eq(&access, &self.call.app.access()) {
                return Err(reloaded());
            }
            if place.is_ended() {
                return Err(stopping());
            }
            let waiting = writer.waiting();
            if waiting < waited || waiting <= MAX_WAITING {
                read = Instant::now();
            }
            waited = waiting;
            if waiting <= MAX_WAITING {
                match self.read(items).await {
                    Ok((told, more)) => {
                        done = Instant::now();
                        if !told.is_empty() {
                            self.push(writer, told)?;
                        }
                        if more {
                            continue;
                        }
                        if !self.follows {
                            return Ok(());
                        }
                    }
                    // Alerts for which there is no room now are read once there is.
                    Err(ApiError { code: Code::Overloaded | Code::DeadlineExceeded, .. })
                        if done.elapsed() < patience => {}
                    Err(error) => return Err(refused(error)),
                }
            } else if read.elapsed() >= patience {
                return Err(unread());
            }
            if self.sent.elapsed() >= HEARTBEAT {
                self.push(writer, self.form.heartbeat())?;
            }
            tokio::select! {
                biased;
                () = place.ended() => return Err(stopping()),
                () = writer.closed() => return Err((Outcome::ClientGone, None)),
                () = sleep(poll) => {}
            }
        }
    }

    fn push(&mut self, writer: &Writer, bytes: Bytes) -> Result<(), End> {
        self.sent = Instant::now();
        writer.push_in_memory(bytes).map_err(|_| (Outcome::ClientGone, None))
    }

    /// The next alerts as they are sent, and whether more can be read at once.
    async fn read(&mut self, items: &mut u64) -> Result<(Bytes, bool)> {
        let (collection, reader) = (Arc::clone(&self.collection), self.reader.clone());
        let is_behind = self.call.again().look_up(move |Call { app, caller, .. }| {
            // It may be deleted meanwhile, and another of its name made.
            let is_remote = app.collections.is_remote();
            let now = app.collections.of(&caller)?.get(collection.name());
            let is_there = now.is_ok_and(|now| is_remote || Arc::ptr_eq(&now, &collection));
            if !is_there {
                return Err(CollectionError::Unknown.into());
            }
            Ok(reader.is_behind(&*collection, cognate_collections::now())?)
        });
        if !is_behind.await? {
            return Ok((Bytes::new(), false));
        }
        let model = Arc::clone(self.call.app.models().choose(self.model.as_deref())?);
        let (collection, mut reader) = (Arc::clone(&self.collection), self.reader.clone());
        let form = self.form;
        let read = self.call.again().compute(move |call, work| {
            let (now, cancel) = (cognate_collections::now(), Cancellation::when(work));
            let (alerts, more) = reader.read(&*collection, &model.engine, now, cancel)?;
            let unsent = call.app.unsent.of(&call.caller.client);
            let texts = alerts.iter().filter_map(|alert| alert.item.as_ref());
            let bytes: usize = texts.map(|item| item.text.len() + ENTRY_BYTES).sum();
            let mut told = unsent.answer(bytes)?;
            for alert in &alerts {
                form.write(&mut told, &Entry::new(alert))?;
            }
            let told = if alerts.is_empty() { Bytes::new() } else { told.into_bytes() };
            Ok((reader, told, alerts.len(), more))
        });
        let (reader, told, count, more) = read.await?;
        self.reader = reader;
        *items += count as u64;
        Ok((told, more))
    }
}

fn refused(error: ApiError) -> End {
    (Outcome::Refused, Some(error))
}

fn stopping() -> End {
    let detail = "the server is about to stop; go on after this `id`";
    (Outcome::Draining, Some(ApiError::new(Code::Draining, detail)))
}

fn reloaded() -> End {
    let detail = "keys were read anew; go on after this `id`";
    (Outcome::Draining, Some(ApiError::new(Code::Draining, detail)))
}

fn unread() -> End {
    let detail =
        "the client does not read its alerts (setting `write_timeout_s`); go on after this `id`";
    (Outcome::SlowReader, Some(ApiError::new(Code::RequestTimeout, detail)))
}
