//! Texts that were read together, and a text that is compared with each of them: data made from one
//! text is made once, however many it is compared with.

use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::engine::{Engine, Query, QueryError, finite};
use crate::methods::{Against, Embed, Info, Measure, Parts, Posts, Scorer, Scratch};
use crate::model::Phrase;

/// Whether two texts with this score of their vectors may consist of the same words, which is then
/// checked: they score 1 even where their vector has length 0, whose cosine is 0.
pub(super) fn may_be_same(score: f32) -> bool {
    score.is_nan() || score >= 0.99 || score == 0.0
}

/// A method and its prepared texts, which other texts are compared with.
pub(super) struct Panel<'e> {
    scorer: &'e Scorer,
    pub(super) info: &'static Info,
    pub(super) measure: Measure,
    /// Dimensions of the vectors; 0 where the method has none.
    dims: usize,
    vectors: Vec<f32>,
}

pub(super) struct Visitor<'q> {
    one: &'q Phrase<'q>,
    by: By<'q>,
}

enum By<'q> {
    Vector(Vec<f32>),
    Both(Box<dyn Against + 'q>),
}

impl<'e> Panel<'e> {
    pub(super) fn new(engine: &'e Engine, query: &Query) -> Result<Self, QueryError> {
        let info = query.method.info();
        let scorer = engine.scorer_of(query)?;
        let measure = engine.measure(scorer, info, query)?;
        let dims = match scorer {
            Scorer::Embed(embedder) => embedder.dims(engine.model.dims()),
            Scorer::Compare(_) | Scorer::RankList(_) => 0,
        };
        Ok(Self { scorer, info, measure, dims, vectors: Vec::new() })
    }

    /// Whether a text's score depends on the other texts of the panel.
    pub(super) fn scores_lists(&self) -> bool {
        matches!(self.scorer, Scorer::RankList(_))
    }

    pub(super) fn fill(&mut self, phrases: &[Phrase<'_>]) {
        self.vectors.clear();
        if let Scorer::Embed(embedder) = self.scorer {
            for phrase in phrases {
                push(embedder.as_ref(), phrase, self.dims, &mut self.vectors);
            }
        }
    }

    /// Returns what the method computes once of texts that several others are compared with; `None` if it
    /// would be used only once.
    pub(super) fn prepared_parts<'p>(
        &self,
        phrases: &'p [Phrase<'p>],
        visits: usize,
        scratch: &mut Scratch,
    ) -> Option<Parts<'p>> {
        (visits > 1).then(|| self.scorer.prepared_parts(phrases, scratch))
    }

    /// Scores texts of another panel, from the index `from` on, against this panel's texts, a row of `out`
    /// for each: one matrix product, with the bits of a [`Visitor`] that scores them one by one. Returns
    /// `false` if the method does not compare vectors by dot product.
    pub(super) fn score_vectors(
        &self,
        (panel, from, texts): (&Self, usize, &[Phrase<'_>]),
        phrases: &[Phrase<'_>],
        out: &mut Vec<f32>,
    ) -> Result<bool, QueryError> {
        if self.dims == 0 || self.measure != Measure::Cosine {
            return Ok(false);
        }
        let rows = from * self.dims..(from + texts.len()) * self.dims;
        let vectors = panel.vectors.get(rows).unwrap_or_default();
        vector::products(vectors, &self.vectors, self.dims, out);
        let length = |vector| vector::norm(Row::F32(vector));
        let lengths: Vec<f32> = self.vectors.chunks_exact(self.dims).map(length).collect();
        let rows = out.chunks_exact_mut(phrases.len().max(1));
        for ((text, vector), row) in texts.iter().zip(vectors.chunks_exact(self.dims)).zip(rows) {
            let own = length(vector);
            for ((score, other), phrase) in row.iter_mut().zip(&lengths).zip(phrases) {
                *score = vector::cosine_of(*score, own * other);
                if may_be_same(*score) && text.same_bag(phrase) {
                    *score = 1.0;
                }
                finite(*score, self.info)?;
            }
        }
        Ok(true)
    }

    pub(super) fn swap_out(&mut self, place: usize) {
        let (start, last) = (place * self.dims, self.vectors.len().saturating_sub(self.dims));
        if start <= last {
            self.vectors.copy_within(last.., start);
            self.vectors.truncate(last);
        }
    }

    pub(super) fn visitor<'q>(&self, one: &'q Phrase<'q>, scratch: &mut Scratch) -> Visitor<'q>
    where
        'e: 'q,
    {
        let by = match self.scorer {
            Scorer::Embed(embedder) => {
                let mut vector = Vec::with_capacity(self.dims);
                push(embedder.as_ref(), one, self.dims, &mut vector);
                By::Vector(vector)
            }
            Scorer::Compare(_) | Scorer::RankList(_) => {
                By::Both(self.scorer.against(self.measure, one, scratch))
            }
        };
        Visitor { one, by }
    }
}

impl Visitor<'_> {
    /// Scores the visitor against the texts of a panel, from an index on.
    pub(super) fn score(
        &mut self,
        panel: &Panel<'_>,
        phrases: &[Phrase<'_>],
        from: usize,
        out: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) -> Result<(), QueryError> {
        let phrases = phrases.get(from..).unwrap_or_default();
        out.clear();
        out.resize(phrases.len(), 0.0);
        match &mut self.by {
            By::Vector(one) => {
                let vectors = panel.vectors.chunks_exact(panel.dims.max(1)).skip(from);
                for ((other, vector), score) in phrases.iter().zip(vectors).zip(&mut *out) {
                    let alike = self.one.same_bag(other);
                    *score = if alike { 1.0 } else { panel.measure.score(one, vector) };
                }
            }
            By::Both(against) => against.score(phrases, out, scratch),
        }
        out.iter().try_for_each(|&score| finite(score, panel.info).map(drop))
    }

    /// Scores the visitor against all texts of a panel, with what was precomputed of them, if anything was.
    pub(super) fn score_prepared(
        &mut self,
        panel: &Panel<'_>,
        phrases: &[Phrase<'_>],
        parts: Option<&Parts<'_>>,
        out: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) -> Result<(), QueryError> {
        let (By::Both(against), Some(parts)) = (&mut self.by, parts) else {
            return self.score(panel, phrases, 0, out, scratch);
        };
        out.clear();
        out.resize(phrases.len(), 0.0);
        against.score_prepared(phrases, parts, out, scratch);
        out.iter().try_for_each(|&score| finite(score, panel.info).map(drop))
    }

    pub(super) fn score_row(&self, panel: &Panel<'_>, row: &[f32]) -> f32 {
        match &self.by {
            By::Vector(one) => panel.measure.score(one, row),
            By::Both(_) => 0.0,
        }
    }

    /// Scores it against each of the posts of a list.
    pub(super) fn score_list(
        &mut self,
        panel: &Panel<'_>,
        posts: &Posts,
        out: &mut Vec<f32>,
    ) -> Result<(), QueryError> {
        out.clear();
        out.resize(posts.len(), 0.0);
        if let By::Both(against) = &mut self.by {
            against.score_list(posts, out);
        }
        out.iter().try_for_each(|&score| finite(score, panel.info).map(drop))
    }

    /// Finds upper bounds of its scores; `false` if the method has none.
    pub(super) fn bounds(
        &mut self,
        panel: &Panel<'_>,
        phrases: &[Phrase<'_>],
        out: &mut Vec<f32>,
        scratch: &mut Scratch,
    ) -> Result<bool, QueryError> {
        out.clear();
        out.resize(phrases.len(), 0.0);
        let bounded = match &mut self.by {
            By::Vector(_) => false,
            By::Both(against) => against.bounds(phrases, out, scratch),
        };
        out.iter().try_for_each(|&bound| finite(bound, panel.info).map(drop))?;
        Ok(bounded)
    }

    /// Scores it against one text, if the method compares texts.
    pub(super) fn score_one(
        &mut self,
        panel: &Panel<'_>,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
    ) -> Result<f32, QueryError> {
        let mut score = [0.0];
        if let By::Both(against) = &mut self.by {
            against.score(std::slice::from_ref(other), &mut score, scratch);
        }
        finite(score[0], panel.info)
    }

    pub(super) fn leave(mut self, scratch: &mut Scratch) {
        if let By::Both(against) = &mut self.by {
            against.give_back(scratch);
        }
    }
}

fn push(embedder: &dyn Embed, phrase: &Phrase<'_>, dims: usize, vectors: &mut Vec<f32>) {
    let start = vectors.len();
    vectors.resize(start + dims, 0.0);
    if let Some(vector) = vectors.get_mut(start..) {
        embedder.embed(phrase, vector);
    }
}
