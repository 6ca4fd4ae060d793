//! What each series means, as the metrics page says it.

use metrics::{Recorder, Unit};
use metrics_exporter_prometheus::PrometheusRecorder;

/// Says what each series means.
pub(super) fn describe(recorder: &PrometheusRecorder) {
    let counters = [
        ("cognate_requests_total", "Answered requests."),
        ("cognate_shed_total", "Requests refused to keep the others fast, by reason."),
        (
            "cognate_connections_refused_total",
            "Times that the limit of connections kept a client waiting.",
        ),
        (
            "cognate_connections_ended_total",
            "Connections that ended before everything was answered and read, by reason.",
        ),
        ("cognate_key_requests_total", "Requests to routes that ask for a key, by its id."),
        ("cognate_collection_matches_total", "Texts matched against a collection and added to it."),
        ("cognate_texts_total", "Texts read."),
        ("cognate_tokens_total", "Tokens read."),
        ("cognate_unknown_tokens_total", "Tokens for which the model has no word."),
        (
            "cognate_method_requests_total",
            "Answers computed, by method; of a stream, chunks of lines.",
        ),
        ("cognate_dialect_requests_total", "Answers computed, by the dialect they were asked in."),
        ("cognate_rank_parts_total", "Rankings that were asked for with a part, by the part."),
        ("cognate_streams_ended_total", "Streams of lines that ended, by how they ended."),
        ("cognate_panics_total", "Requests that failed because of a defect."),
        ("cognate_non_finite_total", "Requests that failed because a score was not finite."),
        ("cognate_reloads_total", "Reloads of keys and models that succeeded."),
        ("cognate_reload_failures_total", "Reloads that left old keys or models in place."),
    ];
    for (name, help) in counters {
        recorder.describe_counter(name.into(), None, help.into());
    }
    let gauges = [
        ("cognate_build_info", "1, with the version as a label."),
        ("cognate_requests_in_flight", "Requests being answered."),
        ("cognate_connections", "Open connections."),
        ("cognate_admission_units", "Limit of texts, pairs and candidates in progress."),
        ("cognate_admission_units_in_use", "Texts, pairs and candidates in progress."),
        (
            "cognate_admission_waiting",
            "Requests that wait until fewer texts, pairs and candidates are in progress.",
        ),
        ("cognate_compute_jobs", "Large requests being computed."),
        ("cognate_compute_queued", "Large requests that wait for a compute thread."),
        ("cognate_unsent_bytes", "Bytes of answers that clients have not read yet."),
        ("cognate_unsent_bytes_limit", "Limit of bytes of unread answers."),
        ("cognate_streams", "Open streams of lines."),
        ("cognate_streams_limit", "Limit of open streams of lines."),
        ("cognate_stream_spool_bytes", "Bytes of files that hold unread answers of streams."),
        ("cognate_stream_spool_bytes_limit", "Limit of bytes of such files."),
        ("cognate_collections", "Collections."),
        ("cognate_collection_items", "Items of all collections."),
        (
            "cognate_collection_bytes",
            "Memory of all collections: items, and windows that are matched against.",
        ),
        (
            "cognate_collections_unwritable",
            "Collections that take no changes until the server starts again.",
        ),
        (
            "cognate_replica_unread_bytes",
            "Bytes of collections' logs that this replica has not taken over.",
        ),
        ("cognate_replica_unreadable_logs", "Collections' logs that this replica cannot read on."),
        ("cognate_ready", "1 if the server is ready for requests, else 0."),
        ("cognate_model_bytes", "Size of a model's file."),
        ("cognate_model_words", "Words of a model."),
        ("cognate_model_intact", "0 if a model's file was changed in place, else 1."),
    ];
    for (name, help) in gauges {
        recorder.describe_gauge(name.into(), None, help.into());
    }
    let histograms = [
        (
            "cognate_request_duration_seconds",
            "Time from a request's head to the head of its answer.",
        ),
        ("cognate_runtime_lateness_seconds", "Delay of the runtime's timers."),
    ];
    for (name, help) in histograms {
        recorder.describe_histogram(name.into(), Some(Unit::Seconds), help.into());
    }
}
