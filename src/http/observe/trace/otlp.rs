//! Spans for a collector beside the service: made here, sent in batches by a thread of their own. A
//! request never waits for them: when the queue is full, only spans are lost.

use std::time::Duration;

use axum::http::{Method as Verb, Uri};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt, TraceState,
    Tracer as _, TracerProvider,
};
use opentelemetry::{Context, KeyValue, SpanId, TraceFlags};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider,
};

use crate::http::build;
use crate::http::observe::metrics::{UNMATCHED, verb_label};
use crate::http::observe::trace::collector::Collector;
use crate::http::observe::trace::{Answered, Parent, TraceId};

/// Spans that wait to be sent, less than a KiB each; more are lost.
const WAITING_SPANS: usize = 4096;
const BATCH_SPANS: usize = 512;
const EVERY: Duration = Duration::from_secs(1);
/// Longest wait for the last spans at the end of the service.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Whether spans can be sent there: plain HTTP, since the collector is meant to be beside the
/// service.
pub(crate) fn check_endpoint(endpoint: &str) -> Result<(), String> {
    target(endpoint).map(drop)
}

fn target(endpoint: &str) -> Result<Uri, String> {
    let target = format!("{}/v1/traces", endpoint.trim_end_matches('/')).parse::<Uri>();
    let plain = |uri: &Uri| {
        let host = uri.authority().is_some_and(|authority| {
            // No user name or password, and only a valid port.
            let port = authority.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
            let host = authority.host();
            !host.is_empty() && authority.as_str() == format!("{host}{port}")
        });
        let path = uri.path().ends_with("/v1/traces") && uri.query().is_none();
        host && path && uri.scheme_str() == Some("http")
    };
    let wrong = "no address of plain HTTP, such as http://127.0.0.1:4318";
    target.ok().filter(plain).ok_or_else(|| wrong.to_owned())
}

pub struct Tracer(Option<(SdkTracerProvider, SdkTracer)>);

impl Tracer {
    pub(crate) fn new(endpoint: Option<&str>) -> Result<Self, String> {
        let Some(endpoint) = endpoint else {
            return Ok(Self(None));
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(target(endpoint)?.to_string())
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(Collector::default())
            // The next batch is worth more than this one, and shutdown waits for it.
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|error| error.to_string())?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(WAITING_SPANS)
            .with_max_export_batch_size(BATCH_SPANS)
            .with_scheduled_delay(EVERY)
            .build();
        let resource = Resource::builder_empty()
            .with_service_name(crate::PROGRAM)
            .with_attribute(KeyValue::new("service.version", build::VERSION));
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .with_span_processor(
                BatchSpanProcessor::builder(exporter).with_batch_config(batches).build(),
            )
            .build();
        let tracer = provider.tracer(crate::PROGRAM);
        Ok(Self(Some((provider, tracer))))
    }

    /// Begins the span of a request. It ends unanswered if it is dropped.
    pub fn begin(&self, verb: &Verb, route: Option<&str>, parent: Option<Parent>) -> Span {
        let Some((_, tracer)) = &self.0 else {
            return Span { parent, recorded: None };
        };
        let mut attributes = vec![KeyValue::new("http.request.method", method(verb))];
        if let Some(route) = route {
            attributes.push(KeyValue::new("http.route", route.to_owned()));
        }
        let span = SpanBuilder::from_name(route.unwrap_or(UNMATCHED).to_owned())
            .with_kind(SpanKind::Server)
            .with_attributes(attributes);
        let around = parent.map_or_else(Context::new, |parent| {
            Context::new().with_remote_span_context(context(parent))
        });
        Span { parent, recorded: Some(tracer.build_with_context(span, &around)) }
    }

    /// Sends the waiting spans, for a limited time. No spans are made afterwards.
    pub(crate) fn finish(&self) {
        if let Some((provider, _)) = &self.0
            && provider.shutdown_with_timeout(LAST_WAIT).is_err()
        {
            tracing::warn!("the collector did not take the last spans in time");
        }
    }
}

/// The verb by OpenTelemetry's conventions: a known method, or `_OTHER`.
fn method(verb: &Verb) -> &'static str {
    match verb_label(verb) {
        "other" => "_OTHER",
        known => known,
    }
}

fn context(parent: Parent) -> SpanContext {
    let flags = if parent.sampled { TraceFlags::SAMPLED } else { TraceFlags::NOT_SAMPLED };
    SpanContext::new(
        opentelemetry::TraceId::from_bytes(parent.trace.0.to_be_bytes()),
        SpanId::from_bytes(parent.span.to_be_bytes()),
        flags,
        true,
        TraceState::NONE,
    )
}

#[derive(Debug)]
pub struct Span {
    parent: Option<Parent>,
    recorded: Option<opentelemetry_sdk::trace::Span>,
}

impl Span {
    /// Returns the id of the trace that contains the span: the caller's trace, or a new trace.
    pub fn trace(&self) -> Option<TraceId> {
        let own = self.recorded.as_ref().map(|span| span.span_context().trace_id().to_bytes());
        let own = own.map(|bytes| TraceId(u128::from_be_bytes(bytes)));
        self.parent.map(|parent| parent.trace).or(own)
    }

    pub(crate) fn end(self, answered: &Answered<'_>) {
        let Some(mut span) = self.recorded.filter(|span| span.is_recording()) else {
            return;
        };
        let status = i64::from(answered.status.as_u16());
        span.set_attribute(KeyValue::new("http.response.status_code", status));
        span.set_attribute(KeyValue::new("cognate.request_id", answered.id.to_owned()));
        if let Some(code) = answered.code {
            span.set_attribute(KeyValue::new("cognate.code", code));
        }
        if let Some(stream) = answered.stream {
            let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            span.set_attributes([
                KeyValue::new("cognate.stream.outcome", stream.outcome.name()),
                KeyValue::new("cognate.stream.lines", number(stream.lines)),
                KeyValue::new("cognate.stream.items", number(stream.items)),
                KeyValue::new("cognate.stream.computed_seconds", stream.computed.as_secs_f64()),
                KeyValue::new("http.request.body.size", number(stream.body_bytes)),
                KeyValue::new("http.response.body.size", number(stream.answer_bytes)),
            ]);
        }
        if answered.status.is_server_error() {
            let kind = answered.code.unwrap_or("unknown");
            span.set_attribute(KeyValue::new("error.type", kind));
            span.set_status(Status::error(""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectors_are_asked_over_plain_http() {
        for (good, expected) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/traces"),
            ("http://collector", "http://collector/v1/traces"),
            ("http://gateway:80/otlp", "http://gateway:80/otlp/v1/traces"),
        ] {
            assert_eq!(target(good).unwrap().to_string(), expected);
        }
        for wrong in [
            "",
            "https://collector:4318",
            "127.0.0.1:4318",
            "collector",
            "grpc://collector:4317",
            "http://",
            "http://:4318",
            "http://user:word@collector:4318",
            "http://collector:99999",
            "http://collector:",
            "http://collector/v1/traces?key=1",
            "http://collector:4318?key=1",
            "http://collector:4318#part",
            "http://a b",
        ] {
            assert!(check_endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
