//! How well distances part related couples from others (De Boom et al. 2016, section 5).

use cognate::model::provenance::Separation;
use cognate_stats::classification::Confusion;
use cognate_stats::divergence::jensen_shannon;
use cognate_stats::threshold::{Criterion, best_threshold};

/// The distances of some couples.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    pub(super) related: Vec<bool>,
    pub(super) distances: Vec<f64>,
}

impl Measured {
    /// The distance that parts these couples best: related ones are at most as far.
    pub(super) fn threshold(&self) -> Option<f64> {
        best_threshold(&self.related, &self.likeness(), Criterion::Accuracy)
            .map(|likeness| -likeness)
    }

    /// The share of these couples on the wrong side of a distance.
    pub(super) fn split_error(&self, threshold: f64) -> Option<f64> {
        let confusion = Confusion::at(-threshold, &self.related, &self.likeness())?;
        Some(confusion.split_error())
    }

    /// What a threshold found elsewhere, and the distances by themselves, make of these couples.
    pub(super) fn parting(&self, threshold: f64) -> Option<Separation> {
        let split_error = self.split_error(threshold)?;
        let js_divergence = jensen_shannon(&self.of(true), &self.of(false))?;
        Some(Separation { split_error, js_divergence })
    }

    /// The distances of one label.
    pub(super) fn of(&self, wanted: bool) -> Vec<f64> {
        let couples = self.related.iter().zip(&self.distances);
        couples.filter(|(related, _)| **related == wanted).map(|(_, distance)| *distance).collect()
    }

    /// Larger for more alike, as measures want it.
    fn likeness(&self) -> Vec<f64> {
        self.distances.iter().map(|distance| -distance).collect()
    }
}
