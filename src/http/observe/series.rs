//! Counters, gauges and histograms, and the page that Prometheus reads. What is counted is not
//! known here.
//!
//! A handle is one atomic number, so that counting never waits; the registry is locked only to find
//! a series by its labels and to write the page.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The label of all further ids.
pub(crate) const OTHER: &str = "other";

/// Upper bounds of the buckets of durations, in seconds.
const SECONDS: [f64; 20] = [
    1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1.0,
    5.0, 30.0, 300.0, 3600.0,
];

#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    pub fn increment(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Gauge(Arc<AtomicU64>);

impl Gauge {
    pub fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }

    pub fn increment(&self, by: f64) {
        add(&self.0, by);
    }

    pub fn decrement(&self, by: f64) {
        add(&self.0, -by);
    }

    pub fn value(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Clone, Default)]
pub struct Histogram(Arc<Buckets>);

#[derive(Debug, Default)]
struct Buckets {
    /// For each bound the number of durations above the bound before it; the last counts those
    /// above all.
    counts: [AtomicU64; SECONDS.len() + 1],
    sum: AtomicU64,
}

impl Histogram {
    pub fn record(&self, seconds: f64) {
        let bucket = SECONDS.partition_point(|&bound| bound < seconds);
        if let Some(count) = self.0.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        add(&self.0.sum, seconds);
    }
}

/// Adds to a float stored as bits.
fn add(bits: &AtomicU64, by: f64) {
    let sum = |old: u64| Some((f64::from_bits(old) + by).to_bits());
    // The closure always returns a value, so this cannot fail.
    let _ = bits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Name, kind and help text of a family.
pub(crate) type Description = (&'static str, Kind, &'static str);

/// Declares families of series: kind, name, help text.
macro_rules! families {
    ($(#[$doc:meta])* $list:ident: $($kind:ident $name:ident $help:literal;)+) => {
        $(#[$doc])*
        pub(super) const $list: &[Description] =
            &[$((stringify!($name), Kind::$kind, $help)),+];
    };
}

/// Declares an enum whose variants have names: labels, or words of settings.
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $type:ident {
        $($(#[$doc:meta])* $variant:ident = $name:literal,)+
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $type { $($(#[$doc])* $variant,)+ }

        impl $type {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

pub(super) use families;
pub(in crate::http) use named;

#[derive(Debug, Clone)]
enum Series {
    Counter(Counter),
    Gauge(Gauge),
    Histogram(Histogram),
}

#[derive(Debug)]
pub(super) struct Registry(Mutex<BTreeMap<&'static str, Family>>);

#[derive(Debug)]
struct Family {
    kind: Kind,
    help: &'static str,
    by_labels: BTreeMap<String, Series>,
}

impl Registry {
    pub(super) fn new(families: &[Description]) -> Self {
        let family =
            |&(name, kind, help)| (name, Family { kind, help, by_labels: BTreeMap::new() });
        Self(Mutex::new(families.iter().map(family).collect()))
    }

    /// Returns the counter with these labels; a new counter starts at zero.
    pub(super) fn counter(&self, name: &'static str, labels: &[(&str, &str)]) -> Counter {
        match self.series(name, Kind::Counter, labels) {
            Some(Series::Counter(counter)) => counter,
            _ => Counter::default(),
        }
    }

    pub(super) fn gauge(&self, name: &'static str, labels: &[(&str, &str)]) -> Gauge {
        match self.series(name, Kind::Gauge, labels) {
            Some(Series::Gauge(gauge)) => gauge,
            _ => Gauge::default(),
        }
    }

    pub(super) fn histogram(&self, name: &'static str, labels: &[(&str, &str)]) -> Histogram {
        match self.series(name, Kind::Histogram, labels) {
            Some(Series::Histogram(histogram)) => histogram,
            _ => Histogram::default(),
        }
    }

    fn series(&self, name: &'static str, kind: Kind, labels: &[(&str, &str)]) -> Option<Series> {
        let mut families = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let family = families.get_mut(name).filter(|family| family.kind == kind);
        debug_assert!(family.is_some(), "{name} is not described");
        let series = family?.by_labels.entry(written(labels)).or_insert_with(|| match kind {
            Kind::Counter => Series::Counter(Counter::default()),
            Kind::Gauge => Series::Gauge(Gauge::default()),
            Kind::Histogram => Series::Histogram(Histogram::default()),
        });
        Some(series.clone())
    }

    /// Sets a series whose value is stored elsewhere.
    pub(super) fn set(&self, family: Description, labels: &[(&str, &str)], value: f64) {
        let (name, kind, help) = family;
        let mut families = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Family { kind, help, by_labels: BTreeMap::new() };
        let gauge = Gauge::default();
        gauge.set(value);
        let family = families.entry(name).or_insert_with(fresh);
        family.by_labels.insert(written(labels), Series::Gauge(gauge));
    }

    pub(super) fn clear(&self, name: &str) {
        let mut families = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(family) = families.get_mut(name) {
            family.by_labels.clear();
        }
    }

    /// Every family, in the text format of Prometheus; those without a series by name alone.
    pub(super) fn render(&self) -> String {
        let families = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut page = String::new();
        for (name, family) in &*families {
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(page, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
            for (labels, series) in &family.by_labels {
                let _ = series.write(&mut page, name, labels);
            }
            page.push('\n');
        }
        page
    }
}

impl Series {
    fn write(&self, page: &mut String, name: &str, labels: &str) -> std::fmt::Result {
        let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        match self {
            Self::Counter(counter) => writeln!(page, "{name}{braced} {}", counter.value()),
            Self::Gauge(gauge) => writeln!(page, "{name}{braced} {}", gauge.value()),
            Self::Histogram(Histogram(buckets)) => {
                let comma = if labels.is_empty() { "" } else { "," };
                let bounds = SECONDS.iter().map(f64::to_string).chain(["+Inf".to_owned()]);
                let mut sum = 0;
                for (bound, count) in bounds.zip(&buckets.counts) {
                    sum += count.load(Ordering::Relaxed);
                    writeln!(page, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {sum}")?;
                }
                let seconds = f64::from_bits(buckets.sum.load(Ordering::Relaxed));
                writeln!(page, "{name}_sum{braced} {seconds}\n{name}_count{braced} {sum}")
            }
        }
    }
}

/// Labels as they are written between braces.
fn written(labels: &[(&str, &str)]) -> String {
    let label = |(name, value): &(&str, &str)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    labels.iter().map(label).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_what_was_counted() {
        let registry = Registry::new(&[
            ("a_total", Kind::Counter, "Counted."),
            ("b", Kind::Gauge, "Set."),
            ("c_seconds", Kind::Histogram, "Timed."),
            ("d", Kind::Gauge, "No series yet."),
        ]);
        registry.counter("a_total", &[("x", "say \"no\"\n\\")]).increment(2);
        registry.counter("a_total", &[("x", "say \"no\"\n\\")]).increment(1);
        let gauge = registry.gauge("b", &[]);
        gauge.increment(2.5);
        gauge.decrement(1.0);
        let histogram = registry.histogram("c_seconds", &[("route", "/r")]);
        [1e-5, 0.3, 7.0].into_iter().for_each(|seconds| histogram.record(seconds));
        let page = registry.render();
        assert!(page.starts_with(
            "# HELP a_total Counted.\n# TYPE a_total counter\na_total{x=\"say \\\"no\\\"\\n\\\\\"} 3\n\n\
             # HELP b Set.\n# TYPE b gauge\nb 1.5\n\n# HELP c_seconds Timed.\n"
        ));
        for line in [
            "c_seconds_bucket{route=\"/r\",le=\"0.00001\"} 1",
            "c_seconds_bucket{route=\"/r\",le=\"0.2\"} 1",
            "c_seconds_bucket{route=\"/r\",le=\"0.5\"} 2",
            "c_seconds_bucket{route=\"/r\",le=\"+Inf\"} 3",
            "c_seconds_sum{route=\"/r\"} 7.30001",
            "c_seconds_count{route=\"/r\"} 3",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in {page}");
        }
        assert!(page.ends_with("# HELP d No series yet.\n# TYPE d gauge\n\n"), "{page}");
    }
}
