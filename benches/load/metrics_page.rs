//! What `/metrics` says, as numbers by series.

use std::collections::BTreeMap;

use anyhow::Context;

/// A page of metrics: values by the series' whole name, labels included.
#[derive(Debug, Default, Clone)]
pub struct Page(BTreeMap<String, f64>);

impl Page {
    /// Reads the Prometheus text format.
    pub fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(series.collect())
    }

    /// The sum of a metric over all its labels. One that is missing is an error: a promise about
    /// it would hold for the wrong reason.
    pub fn sum(&self, name: &str) -> anyhow::Result<f64> {
        let same = |series: &str| series.split('{').next() == Some(name);
        let mut values = self.0.iter().filter(|(series, _)| same(series)).map(|(_, value)| value);
        let first = values.next().with_context(|| format!("/metrics has no {name}"))?;
        Ok(first + values.sum::<f64>())
    }

    /// A quantile of what a histogram counted since an `earlier` page: the upper end of the bucket
    /// it falls into, in the histogram's unit. None if nothing was counted.
    pub fn quantile_since(&self, earlier: &Self, name: &str, quantile: f64) -> Option<f64> {
        let prefix = format!("{name}_bucket{{");
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for (series, value) in self.0.iter().filter(|(series, _)| series.starts_with(&prefix)) {
            let bound = series.split("le=\"").nth(1)?.split('"').next()?;
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
            let count = value - earlier.0.get(series).copied().unwrap_or(0.0);
            buckets.push((bound, count));
        }
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total = buckets.last().map(|bucket| bucket.1).filter(|&total| total > 0.0)?;
        buckets.iter().find(|bucket| bucket.1 >= quantile * total).map(|bucket| bucket.0)
    }
}
