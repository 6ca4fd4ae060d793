//! What came out of a run, for people and for programs.

use cognate::model::provenance::Separation;
use cognate::model::writer::Written;
use serde::Serialize;

use crate::weights::{NamedSet, Tried};

/// What was trained and written.
#[derive(Debug, Clone, Serialize)]
pub struct Trained {
    #[serde(flatten)]
    pub course: Course,
    /// Whether the set is the one in use.
    pub in_use: bool,
    #[serde(flatten)]
    pub written: Written,
}

/// How a run went.
#[derive(Debug, Clone, Serialize)]
pub struct Course {
    #[serde(flatten)]
    pub set: NamedSet,
    /// Each κ tried, where one was searched for.
    pub tried: Vec<Tried>,
    /// The mean loss of each epoch.
    pub losses: Vec<f64>,
    /// What an earlier process had done.
    pub resumed: Resumed,
    /// How long the parts of this process took.
    pub seconds: Seconds,
    /// The distances behind the figures, for plots.
    #[serde(skip)]
    pub judged: Judged,
}

/// What an earlier process of a run had done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Resumed {
    /// Runs of the search for κ.
    pub runs: usize,
    pub epochs: usize,
}

/// How long the parts of a run took, in seconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Seconds {
    /// Couples read and looked up.
    pub reading: f64,
    pub forms: f64,
    pub search: f64,
    pub training: f64,
    /// The figures before and after.
    pub judging: f64,
}

/// Couples not trained on, as the untrained and the trained weights see them.
#[derive(Debug, Clone, Default)]
pub struct Judged {
    /// Whether each is related.
    pub related: Vec<bool>,
    /// Under the weights that training began with.
    pub before: Side,
    /// Under the trained weights.
    pub after: Side,
}

/// Couples under some weights.
#[derive(Debug, Clone, Default)]
pub struct Side {
    pub distances: Vec<f64>,
    /// The distance that best parts the couples trained on.
    pub threshold: f64,
    /// What the distances are worth.
    pub parting: Separation,
}

impl std::fmt::Display for Trained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Course { set, resumed, seconds, losses, judged, .. } = &self.course;
        writeln!(f, "{}", self.written.path.display())?;
        let usage = if self.in_use { "in use" } else { "not in use" };
        let count = set.weights.len();
        writeln!(f, "  set {} ({usage}): {count} weights for {}", set.set, set.measure.name())?;
        if let Some(trained) = &set.trained {
            let out = trained.left_out;
            let judged = judged.related.len();
            writeln!(
                f,
                "  {} couples trained on, {judged} judged by, {out} left out for a text without a \
                 known word",
                trained.couples
            )?;
            if let Some(kappa) = trained.kappa {
                let tried = self.course.tried.len();
                let found =
                    if tried > 0 { format!(", the best of {tried}") } else { String::new() };
                writeln!(f, "  κ {kappa}{found}")?;
            }
        }
        if *resumed != Resumed::default() {
            let Resumed { runs, epochs } = resumed;
            writeln!(f, "  went on after {runs} runs of the search and {epochs} epochs")?;
        }
        if let (Some(first), Some(last)) = (losses.first(), losses.last()) {
            let epochs = losses.len();
            writeln!(
                f,
                "  {epochs} epochs, mean loss {first:.5} in the first, {last:.5} in the last"
            )?;
        }
        let Seconds { forms, search, training, .. } = seconds;
        writeln!(f, "  {forms:.1} s for forms, {search:.1} s for κ, {training:.1} s for epochs")?;
        writeln!(f, "            split error   JS divergence")?;
        for (name, side) in [("before", &judged.before), ("after", &judged.after)] {
            let Separation { split_error, js_divergence } = side.parting;
            writeln!(f, "  {name:6}    {:9.2} %   {js_divergence:13.4}", 100.0 * split_error)?;
        }
        let shown = |weights: &[f32]| -> String {
            weights.iter().map(|weight| format!("{weight:.3}")).collect::<Vec<_>>().join(" ")
        };
        writeln!(f, "  weights {}", shown(&set.weights))?;
        write!(f, "{}", self.written)
    }
}
