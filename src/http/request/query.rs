//! The settings that every question shares: model, method, measure, and what happens with unknown
//! and overlong texts.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use cognate::engine::fuse::{FusedProblem, Fusion, Ranker};
use cognate::engine::rank::Question;
use cognate::engine::{Measure, Opposites, Place, Query, QueryError};
use cognate::methods::{Kind, Method};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::error::{ApiError, Code, Fault, MAX_ITEMS, Pointer, Result};
use crate::http::registry::models::{LoadedModel, Models};
use crate::http::request::fields::Share;

/// Multiplications that take as long as the overhead of a text: some 200 ns.
const A_TEXT: u64 = 200 * MULTIPLICATIONS_PER_NANO;
const MEAN_WORD: usize = 6;
const SHORTEST_WORD: usize = 2;

/// What to do with a text that cannot be scored: list it, or refuse the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OovPolicy {
    /// An item with a text that has no known word, is empty or is too long gets score 0; its index is
    /// listed under `unscored`, the reason under `reasons`.
    #[default]
    Score,
    /// The whole request is refused.
    Error,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Selection<'r> {
    pub model: Option<&'r str>,
    pub method: Option<&'r str>,
    pub measure: Option<Measure>,
    pub opposites: Option<Opposites>,
    pub oov: Option<OovPolicy>,
    /// Whether a text that is too long is cut.
    pub truncate: Option<bool>,
    pub coverage: Option<bool>,
    /// The least share of known words of a text that is ranked for.
    pub min_known: Option<Share>,
    pub return_opposes: Option<bool>,
}

#[derive(Clone)]
pub struct Resolved {
    pub model: Arc<LoadedModel>,
    /// Method, measure, and what happens with unknown and overlong texts. For a fusion, the method for
    /// which texts are read.
    pub query: Query,
    /// The fusion that ranks instead of a single method, if there is one.
    pub fused: Option<Fused>,
}

#[derive(Clone)]
pub struct Fused {
    pub name: Arc<str>,
    pub fusion: Arc<Fusion>,
}

impl Fused {
    /// A fusion whose parts the request names.
    pub(crate) fn of_request(fusion: Fusion) -> Self {
        Self { name: "fuse".into(), fusion: Arc::new(fusion) }
    }
}

impl<'r> Selection<'r> {
    pub(crate) fn named(
        model: Option<&'r impl AsRef<str>>,
        method: Option<&'r impl AsRef<str>>,
    ) -> Self {
        let (model, method) = (model.map(AsRef::as_ref), method.map(AsRef::as_ref));
        Self { model, method, ..Self::default() }
    }

    pub fn resolve(&self, models: &Models) -> Result<Resolved> {
        let model = models.choose(self.model)?;
        model.check_sound()?;
        let name = self.method.unwrap_or("auto");
        // Mostly a name is written as in listings, and need not be normalised.
        let listed = Method::ALL.iter().copied().find(|method| method.name() == name);
        let method = listed.map_or_else(|| model.engine.method(name), Ok)?;
        let query = Query {
            measure: self.measure,
            opposes: self.return_opposes.unwrap_or(false),
            refuse_unscored: self.oov == Some(OovPolicy::Error),
            truncate: self.truncate.unwrap_or(false),
            coverage: self.coverage.unwrap_or(false),
            min_known: self.min_known.map_or(0.0, |Share(least)| least as f32),
            ..Query::new(method)
        };
        let query = query.with_opposites(self.opposites);
        let resolved = Resolved { model: Arc::clone(model), query, fused: None };
        if query.opposes {
            resolved.check_tells_opposites("/return_opposes")?;
        }
        Ok(resolved)
    }

    /// Finds the model, and the method or fusion that ranks.
    pub fn resolve_ranking(&self, models: &Models) -> Result<Resolved> {
        // Names of methods have no colon.
        let Some(name) = self.method.filter(|name| name.contains(':')) else {
            return self.resolve(models);
        };
        let resolved = Self { method: None, ..*self }.resolve(models)?;
        let engine = &resolved.model.engine;
        let fused = match engine.ranker(name)? {
            Ranker::Method(_) => return self.resolve(models),
            Ranker::Fused(fused) => {
                Fused { name: Arc::clone(fused.name()), fusion: engine.fusion(fused)? }
            }
        };
        resolved.by(fused)
    }
}

impl Resolved {
    /// Returns this question with a fusion as its ranking.
    pub(crate) fn by(self, fused: Fused) -> Result<Self> {
        if self.query.measure.is_some() {
            let (name, problem) = (fused.name.to_string(), FusedProblem::Measured);
            return Err(QueryError::Fused { name, problem }.into());
        }
        let method = fused.fusion.reading(self.query.method);
        Ok(Self { query: Query { method, ..self.query }, fused: Some(fused), ..self })
    }

    pub(crate) fn method_name(&self) -> &str {
        let method = self.query.method.name();
        self.fused.as_ref().map_or(method, |fused| &*fused.name)
    }

    pub(crate) fn listed_method(&self) -> Cow<'static, str> {
        match &self.fused {
            None => self.query.method.name().into(),
            Some(fused) => fused.name.to_string().into(),
        }
    }

    pub(crate) fn methods(&self) -> impl Iterator<Item = Method> {
        let fused = self.fused.iter().flat_map(|fused| fused.fusion.methods());
        let alone = self.fused.is_none().then_some(self.query.method);
        alone.into_iter().chain(fused.map(|(_, method, _)| method))
    }

    /// Refuses a field that needs opposites, if the model has none.
    pub(crate) fn check_tells_opposites(&self, pointer: &'static str) -> Result<()> {
        let known = self.model.engine.knows_opposites();
        let refused = |reason| ApiError::from(QueryError::OppositesUnknown { reason });
        known.map_err(|reason| refused(reason).renamed(|_| pointer.into()))
    }

    fn check_no_fusion(&self) -> Result<()> {
        let Some(fused) = &self.fused else { return Ok(()) };
        let (name, problem) = (fused.name.to_string(), FusedProblem::OnlyRanks);
        Err(QueryError::Fused { name, problem }.into())
    }

    pub(crate) fn measure(&self) -> Measure {
        self.model.engine.measure_of(&self.query)
    }

    /// Refuses a method that cannot score pairs, or not by the requested measure.
    pub(crate) fn check_scores(&self) -> Result<()> {
        let info = self.query.method.info();
        if info.kind == Kind::Ranker {
            return Err(QueryError::OnlyRanks { method: info.name }.into());
        }
        Ok(self.model.engine.check(&self.query)?)
    }

    /// Refuses liked texts and options of a page that the method does not support.
    pub(crate) fn check_page(&self, question: &Question<'_>) -> Result<()> {
        let (method, page) = (self.method_name(), &question.page);
        let compared = [
            ("/like", question.asked.likes().is_some()),
            ("/collapse", page.collapse.is_some()),
            ("/diversify", page.diversify.is_some()),
        ];
        let compared = compared.into_iter().find(|(_, is_asked)| *is_asked);
        let only_ranks = self.fused.is_some() || self.query.method.info().kind == Kind::Ranker;
        if let Some((pointer, _)) = compared.filter(|_| only_ranks) {
            let detail = format!(
                "`{}` needs a method whose scores say how alike two texts are, and {method} only ranks",
                pointer.trim_start_matches('/')
            );
            return Err(ApiError::at(Code::MethodOnlyRanks, pointer, detail));
        }
        self.model.engine.check_opposes(question)?;
        if !page.explain {
            return Ok(());
        }
        if self.fused.is_some() {
            let detail = format!("what {method} scores does not divide into words");
            return Err(ApiError::at(Code::MethodUnavailable, "/explain", detail));
        }
        let explains = self.check_explains();
        explains.map_err(|error| error.renamed(|it| it.renamed("method", "/explain")))
    }

    /// Refuses a least score that no candidate can reach.
    pub(crate) fn check_reach(&self, question: &Question<'_>, are_boosted: bool) -> Result<()> {
        let Some((name, most)) = question.out_of_reach(are_boosted) else { return Ok(()) };
        let detail =
            format!("`{name}` is beyond all scores of {}: at most {most}", self.method_name());
        Err(ApiError::at(Code::OutOfRange, Pointer::from("").field(name), detail))
    }

    /// Refuses a method whose scores of pairs cannot be explained.
    pub(crate) fn check_explains(&self) -> Result<()> {
        self.check_no_fusion()?;
        Ok(self.model.engine.check_explain(&self.query)?)
    }

    /// Approximate multiplications for one text against another.
    pub fn multiplications(&self, one: &str, other: &str) -> u64 {
        // Counting words pays only where they can be more work than reading them.
        if self.most_multiplications(one, other) <= reading(one.len() + other.len()) {
            return self.work([one, other].map(|text| self.words_of(text.len() / MEAN_WORD)));
        }
        self.work([one, other].map(|text| self.words(text)))
    }

    /// Returns an upper bound of the multiplications for two texts, from their lengths alone: as if they had
    /// as many words as fit.
    pub fn most_multiplications(&self, one: &str, other: &str) -> u64 {
        self.work([one, other].map(|text| self.words_of(text.len() / SHORTEST_WORD + 1)))
    }

    /// Multiplications for texts of so many words.
    fn work(&self, [one, other]: [u64; 2]) -> u64 {
        2 * A_TEXT + (self.query.method.info().cost.pair)(one, other, self.dims())
    }

    /// Returns the least and the greatest number of multiplications for ranking candidates for each text.
    /// They differ if only the best are wanted and bounds may rule out the rest.
    pub fn multiplications_of_ranking<'t>(
        &self,
        asked: impl Iterator<Item = &'t str>,
        candidates: impl Iterator<Item = &'t str> + Clone,
        only_best: bool,
    ) -> [u64; 2] {
        let asked = tally(asked.map(|text| self.words(text)).collect());
        // A fusion needs every part's score of every candidate.
        let only_best = only_best && self.fused.is_none();
        self.methods().fold([0_u64; 2], |sums, method| {
            let [least, most] = self.of_ranking(method, &asked, candidates.clone(), only_best);
            [sums[0].saturating_add(least), sums[1].saturating_add(most)]
        })
    }

    /// For texts of so many words.
    fn of_ranking<'t>(
        &self,
        method: Method,
        asked: &[Tally],
        candidates: impl Iterator<Item = &'t str>,
        only_best: bool,
    ) -> [u64; 2] {
        let cost = &method.info().cost;
        let (longest, dims) = (asked.last().map_or(0, |asked| asked.words), self.dims());
        let bound = cost.bound.filter(|_| only_best).unwrap_or(cost.candidate);
        let words = candidates.map(|candidate| {
            let most = self.words_of(candidate.len() / SHORTEST_WORD + 1);
            match (cost.candidate)(longest, most, dims) <= reading(candidate.len()) {
                true => self.words_of(candidate.len() / MEAN_WORD),
                false => self.words(candidate),
            }
        });
        sum_of_all(asked, &tally(words.collect()), |n, m| {
            [bound, cost.candidate].map(|formula| A_TEXT + formula(n, m, dims))
        })
    }

    fn dims(&self) -> u64 {
        self.model.engine.model().dims() as u64
    }

    /// Approximate number of words of a text, up to the limit.
    pub(crate) fn words(&self, text: &str) -> u64 {
        // A text with more bytes is refused, or has no score, before it is read.
        let text = self.model.engine.cut(text, &self.query);
        if text.len() > self.model.engine.limits().bytes {
            return self.words_of(0);
        }
        self.words_of(self.model.engine.model().about_tokens(text))
    }

    fn words_of(&self, count: usize) -> u64 {
        count.clamp(1, self.model.engine.limits().tokens.max(1)) as u64
    }

    /// Every faulty text, where scoring stopped at the first.
    pub(crate) fn faults<'t>(&self, texts: impl Iterator<Item = (Place, &'t str)>) -> Vec<Fault> {
        let fault = |(place, text)| {
            let error = self.model.engine.check_text(text, &self.query, place).err()?;
            Fault::from_query(&error)
        };
        texts.filter_map(fault).take(MAX_ITEMS).collect()
    }

    /// Adds the other errors of a question to the first one.
    pub(crate) fn explain<'t>(
        &self,
        mut error: ApiError,
        texts: impl Iterator<Item = (Place, &'t str)>,
    ) -> ApiError {
        let of_text = matches!(
            error.code,
            Code::EmptyText | Code::TextTooLong | Code::TooManyTokens | Code::AllOov
        );
        if of_text {
            let mut faults = self.faults(texts);
            if !self.query.refuse_unscored {
                // If only texts of this kind are refused, the others have no error.
                faults.retain(|fault| fault.code == error.code);
            }
            if !faults.is_empty() {
                error.faults = faults;
            }
        }
        error
    }

    /// Refuses a question whose texts certainly have too many tokens in all, before they are read.
    /// [`Resolved::check_read`] checks the others afterwards, so that no text is tokenised twice.
    /// Calls `go_on` before each text that is tokenised here.
    pub(crate) fn check_total<'t>(
        &self,
        texts: impl Iterator<Item = (Place, &'t str)> + Clone,
        limit: usize,
        go_on: impl Fn() -> Result<()>,
    ) -> Result<()> {
        // A token takes at least a byte, so only long questions have to be counted, and most of
        // those roughly.
        let bytes: usize = texts.clone().map(|(_, text)| text.len()).sum();
        let model = self.model.engine.model();
        if bytes <= limit
            || texts.clone().map(|(_, text)| model.about_tokens(text)).sum::<usize>() <= limit
        {
            return Ok(());
        }
        let count = |total: usize, (place, text)| {
            go_on()?;
            let read = match self.model.engine.check_text(text, &self.query, place) {
                Err(_) if !self.query.refuse_unscored => 0,
                read => read?,
            };
            Ok::<_, ApiError>(total.saturating_add(read))
        };
        let total = texts.clone().try_fold(0, count).map_err(|error| self.explain(error, texts))?;
        Self::check_read(total, limit)
    }

    /// Refuses a question whose texts turned out to have too many tokens in all.
    pub(crate) fn check_read(tokens: usize, limit: usize) -> Result<()> {
        match tokens > limit {
            false => Ok(()),
            true => {
                let code = Code::TooManyTokensTotal;
                Err(ApiError::beyond(code, "", "tokens in all", limit, tokens))
            }
        }
    }
}

/// Texts of the same number of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tally {
    words: u64,
    texts: u64,
}

/// Texts counted by their number of words, the fewest first.
fn tally(mut words: Vec<u64>) -> Vec<Tally> {
    words.sort_unstable();
    let same = words.chunk_by(|one, next| one == next);
    same.map(|same| Tally {
        words: same.first().copied().unwrap_or_default(),
        texts: same.len() as u64,
    })
    .collect()
}

/// The work of all texts of one list against all of another, if two texts of so many words take
/// `each`, which is computed once for all texts of the same numbers of words: a body that is
/// weighed on the runtime may have millions of pairs of texts, but only thousands of pairs of such
/// numbers.
fn sum_of_all(
    asked: &[Tally],
    candidates: &[Tally],
    mut each: impl FnMut(u64, u64) -> [u64; 2],
) -> [u64; 2] {
    let pairs = asked.iter().flat_map(|one| candidates.iter().map(move |other| (one, other)));
    pairs.fold([0_u64; 2], |sums, (one, other)| {
        let (times, work) = (one.texts.saturating_mul(other.texts), each(one.words, other.words));
        let [least, most] = work.map(|work| work.saturating_mul(times));
        [sums[0].saturating_add(least), sums[1].saturating_add(most)]
    })
}

/// Nanoseconds for reading a byte of text: parsing, tokens, lookup. Unlisted words take two (a
/// vector from the hash) to seven times as long (one from pieces, short words of random letters),
/// but which those are is known only after the lookup. This and the next constant are from `cargo
/// bench --bench handover`.
pub(crate) const NANOS_PER_BYTE: u64 = 12;
/// Multiplications per nanosecond, as the methods' costs count them, including the conversion of
/// the vectors' rows.
pub(crate) const MULTIPLICATIONS_PER_NANO: u64 = 32;
/// Multiplications that take as long as writing a number as text: some 30 ns.
pub(crate) const WRITING: u64 = 30 * MULTIPLICATIONS_PER_NANO;

/// Approximate nanoseconds for texts of `bytes` bytes and `multiplications` multiplications.
pub fn estimate(bytes: usize, multiplications: u64) -> u64 {
    reading(bytes).saturating_add(multiplications) / MULTIPLICATIONS_PER_NANO
}

/// Multiplications that take as long as reading `bytes` bytes of text.
pub(crate) fn reading(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(NANOS_PER_BYTE * MULTIPLICATIONS_PER_NANO)
}

/// The connection's view of an answer; a request extension for answers that may be sent for long.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    answer_bytes: AtomicU64,
    gave_up: AtomicBool,
}

impl Delivery {
    /// Sets the length of the answer; 0 if unknown.
    pub(crate) fn set_answer_bytes(&self, bytes: u64) {
        self.answer_bytes.store(bytes, Relaxed);
    }

    pub(crate) fn answer_bytes(&self) -> u64 {
        self.answer_bytes.load(Relaxed)
    }

    /// The client read too slowly, and its connection ends.
    pub(crate) fn give_up(&self) {
        self.gave_up.store(true, Relaxed);
    }

    pub(crate) fn was_given_up(&self) -> bool {
        self.gave_up.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_same_length_are_weighed_together() {
        let (asked, candidates) = (vec![1; 100], vec![1; 7500]);
        let mut calls = 0;
        let sums = sum_of_all(&tally(asked), &tally(candidates), |n, m| {
            calls += 1;
            [n, 2 * m]
        });
        assert_eq!((calls, sums), (1, [750_000, 1_500_000]));
    }

    #[test]
    fn the_sum_is_that_of_each_text_with_each() {
        let (asked, candidates) = ([3, 1, 512, 3], [7, 7, 2, 512, 1, 7]);
        let each = |n: u64, m: u64| [n * m + 1, n * n * m];
        let mut plain = [0, 0];
        for n in asked {
            for m in candidates {
                let [least, most] = each(n, m);
                plain = [plain[0] + least, plain[1] + most];
            }
        }
        let (asked, candidates) = (tally(asked.to_vec()), tally(candidates.to_vec()));
        assert_eq!(sum_of_all(&asked, &candidates, each), plain);
        assert_eq!(sum_of_all(&asked, &[], each), [0, 0]);
        assert_eq!(sum_of_all(&asked, &candidates, |_, _| [0, u64::MAX]), [0, u64::MAX]);
    }
}
