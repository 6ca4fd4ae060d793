//! What a caller adds to the score of a candidate, or multiplies it by: how recent it is, or how
//! popular. What it means is not known here.

/// How a boost changes a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BoostBy {
    /// It is added.
    #[default]
    Add,
    /// The score is multiplied by it; it must not be negative.
    Multiply,
}

impl BoostBy {
    /// A score with its boost. It never falls where the score rises, so a bound of the score with the
    /// boost is one of the score that comes of it.
    pub fn boosted(self, score: f32, boost: Option<f32>) -> f32 {
        match (self, boost) {
            (_, None) => score,
            (Self::Add, Some(boost)) => score + boost,
            (Self::Multiply, Some(boost)) => score * boost,
        }
    }
}

/// The boosts of a list of candidates.
#[derive(Debug, Clone, Copy, Default)]
pub struct Boosts<'b> {
    /// What they do.
    pub by: BoostBy,
    /// One a candidate, in order; none at all where no candidate has one.
    pub of: &'b [Option<f32>],
}

impl Boosts<'_> {
    /// The score of the candidate at a place of the list.
    pub(crate) fn apply(&self, index: usize, score: f32) -> f32 {
        self.by.boosted(score, self.of.get(index).copied().flatten())
    }
}
