//! What is made of a ranking before it is told: duplicates folded, the best made to differ, a page of
//! the results, and why they are there.

use std::collections::HashMap;

use cognate::engine::fuse::{FuseError, Fusion, MOST_PARTS, Part, Source};
use cognate::engine::{Counts, Duplicate, Engine, Likes, Query, QueryError, RankOptions, Ranking};

use crate::http::api::pipeline::Plan;
use crate::http::api::rank::plan::Candidates;
use crate::http::api::rank::request::Asked;
use crate::http::api::rank::response::{DuplicateCandidate, SharedWord};
use crate::http::api::rank::{RankRequest, RankedCandidate};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Fault, MOST_ITEMS, Pointer, Segment};
use crate::http::request::fields::{Count, FusePart, MeasureName, Offset, Pool, Score, Share};
use crate::http::request::query::{Fused, Resolved};
use crate::http::work::pool::JobContext;

/// Most results that are explained.
pub(super) const MOST_EXPLAINED: usize = 20;
/// Words of an explanation.
pub(super) const WORDS: usize = 5;
/// How many times the results wanted the pool is unless a request says otherwise.
const POOL: usize = 4;
/// What a score counts against likeness unless a request says otherwise.
const LAMBDA: f64 = 0.7;

/// A ranking as it is told.
pub(crate) struct Page {
    pub(crate) ranking: Ranking,
    options: RankOptions,
    /// The duplicates of candidates that have such, by index.
    duplicates: HashMap<usize, Vec<Duplicate>>,
    /// Of the first results, the liked text that speaks most for each, and the words that do.
    reasons: Vec<(Option<usize>, Vec<SharedWord>)>,
}

/// A result of a page.
pub(crate) struct Placed {
    /// Its place among the candidates.
    pub(crate) index: usize,
    /// What it stands for.
    pub(crate) duplicates: Vec<Duplicate>,
    /// The liked text that speaks most for it.
    pub(crate) like: Option<usize>,
    pub(crate) words: Option<Vec<SharedWord>>,
}

impl RankRequest<'_> {
    /// How many of the first results are passed over.
    pub(crate) fn passed_over(&self) -> usize {
        self.offset.map_or(0, |Offset(passed)| passed)
    }

    /// How many results there are to the end of the page.
    pub(crate) fn wanted(&self) -> Option<usize> {
        self.top_k.map(|Count(most)| most.saturating_add(self.passed_over()))
    }

    /// How many candidates are made to differ, if any.
    pub(super) fn pool(&self) -> Option<usize> {
        let diversify = self.diversify?;
        let of_page = self.top_k.map_or(Pool::MOST, |Count(most)| most.saturating_mul(POOL));
        Some(diversify.pool.map_or(of_page, |Pool(pool)| pool).min(Pool::MOST))
    }

    /// How many candidates are needed in the order of their scores.
    pub(crate) fn needed(&self) -> Option<usize> {
        match self.collapse {
            // Duplicates may stand anywhere.
            Some(_) => None,
            None => self.wanted().map(|wanted| wanted.max(self.pool().unwrap_or(0))),
        }
    }

    /// Makes a page of a ranking for what was asked.
    pub(crate) fn page(
        &self,
        ranking: Ranking,
        options: RankOptions,
        asked: &Asked<'_, '_>,
        resolved: &Resolved,
        work: &JobContext,
    ) -> Result<Page, ApiError> {
        let options = RankOptions { top_k: self.wanted(), ..options };
        let mut page = Page { ranking, options, duplicates: HashMap::new(), reasons: Vec::new() };
        let (engine, query) = (&resolved.model.engine, &resolved.query);
        let (candidates, results) = (self.candidates(), &mut page.ranking.results);
        let wanted = self.wanted().unwrap_or(usize::MAX);
        if let Some(least) = self.sameness(resolved)? {
            let most = wanted.max(self.pool().unwrap_or(0));
            let folds =
                engine.collapse(results, candidates, (least, most), query, || work.check())?;
            results.clear();
            for fold in folds {
                results.push(fold.best);
                if !fold.duplicates.is_empty() {
                    page.duplicates.insert(fold.best.index, fold.duplicates);
                }
            }
        }
        if let Some(diversify) = self.diversify {
            let pool = self.pool().unwrap_or(0).min(results.len());
            let lambda = diversify.lambda.map_or(LAMBDA, |Share(lambda)| lambda);
            let pool = results.get_mut(..pool).unwrap_or_default();
            let check = || work.check();
            engine.diversify(pool, candidates, (lambda, wanted), query, check)?;
        }
        results.truncate(wanted);
        if self.explain == Some(true) {
            page.explain(self, asked, engine, query, work)?;
        }
        Ok(page)
    }
}

impl Page {
    /// Finds the words with the largest shares of the score of each of the first results.
    fn explain(
        &mut self,
        request: &RankRequest<'_>,
        asked: &Asked<'_, '_>,
        engine: &Engine,
        query: &Query,
        work: &JobContext,
    ) -> Result<(), ApiError> {
        let shown = self.ranking.results.iter().skip(request.passed_over()).take(MOST_EXPLAINED);
        for ranked in shown {
            work.check()?;
            let candidate = request.candidates().get(ranked.index).map_or("", AsRef::as_ref);
            let (text, liked) = match asked {
                Asked::Query(text) => (text.as_ref(), None),
                Asked::Queries(texts) => (texts.first().map_or("", AsRef::as_ref), None),
                Asked::Likes(likes) => best_liked(likes, candidate, engine, query)?,
            };
            let explained = engine.explain(text, candidate, query)?;
            if explained.shares.is_none() && !explained.unscored {
                let method = query.method.name();
                let detail = format!("what {method} scores does not divide into words");
                return Err(ApiError::at(Code::MethodUnavailable, "/explain", detail));
            }
            self.reasons.push((liked, SharedWord::largest(&explained, WORDS)));
        }
        Ok(())
    }

    /// Why the result at a place after the first `offset` is there, where that was asked.
    pub(super) fn reason(&self, place: usize) -> Option<&(Option<usize>, Vec<SharedWord>)> {
        self.reasons.get(place)
    }

    /// The duplicates that a candidate stands for.
    pub(super) fn duplicates_of(&self, index: usize) -> &[Duplicate] {
        self.duplicates.get(&index).map_or(&[], Vec::as_slice)
    }

    /// The scored results after the first `offset`, and how many those are.
    pub(crate) fn placed(mut self, offset: usize) -> (Vec<Placed>, usize) {
        let results = std::mem::take(&mut self.ranking.results);
        let passed_over = offset.min(results.len());
        let mut reasons = std::mem::take(&mut self.reasons).into_iter();
        let placed = results.into_iter().skip(offset).map(|ranked| {
            let (like, words) =
                reasons.next().map_or((None, None), |(like, words)| (like, Some(words)));
            let duplicates = self.duplicates.remove(&ranked.index).unwrap_or_default();
            Placed { index: ranked.index, duplicates, like, words }
        });
        (placed.collect(), passed_over)
    }

    /// What is listed, the unscored last: index, score, words and duplicates of each.
    pub(crate) fn lines(
        &self,
        offset: usize,
    ) -> impl Iterator<Item = (usize, Option<f32>, &[SharedWord], &[Duplicate])> {
        let listed = self.ranking.listed(&self.options).skip(offset).enumerate();
        listed.map(|(place, (index, score))| {
            let words = self.reasons.get(place).map_or(&[][..], |(_, words)| words);
            let duplicates = self.duplicates.get(&index).map_or(&[][..], Vec::as_slice);
            (index, score, words, duplicates)
        })
    }

    /// The results of the page, the unscored last where everything is wanted.
    pub(crate) fn results<'r>(&'r self, request: &'r RankRequest<'_>) -> Vec<RankedCandidate<'r>> {
        let with_text = request.return_text.unwrap_or(false);
        let candidate = |(index, score): (usize, Option<f32>)| {
            let candidate = request.candidates().get(index)?;
            let text = with_text.then_some(candidate.as_ref());
            let known = self.ranking.known.get(index).copied();
            Some(RankedCandidate::of(index, score, text).with(candidate, known))
        };
        let listed = self.ranking.listed(&self.options).skip(request.passed_over());
        let mut results: Vec<RankedCandidate<'r>> = listed.filter_map(candidate).collect();
        for (result, (liked, words)) in results.iter_mut().zip(&self.reasons) {
            result.explained_by(*liked, words);
        }
        if !self.duplicates.is_empty() {
            let duplicate = |duplicate: &Duplicate| {
                let index = duplicate.ranked.index;
                let id = request.candidates().get(index).and_then(|candidate| candidate.id());
                DuplicateCandidate::of(duplicate, id)
            };
            for result in &mut results {
                let found = self.duplicates.get(&result.index());
                result.stand_for(found.into_iter().flatten().map(duplicate).collect());
            }
        }
        results
    }
}

/// The liked text that speaks most for a candidate, and its place.
fn best_liked<'t>(
    likes: &Likes<'t>,
    candidate: &str,
    engine: &Engine,
    query: &Query,
) -> Result<(&'t str, Option<usize>), QueryError> {
    let texts: Vec<&str> = likes.liked.iter().map(|liked| liked.text).collect();
    // Scores are the same in either order of the texts.
    let ranking = engine.rank(candidate, &texts, query)?;
    let weighted = ranking.results.iter().filter_map(|ranked| {
        let liked = likes.liked.get(ranked.index)?;
        Some((f64::from(liked.weight) * f64::from(ranked.score), ranked.index, liked.text))
    });
    let best = weighted.reduce(|a, b| if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a });
    Ok(best.map_or(("", None), |(_, index, text)| (text, Some(index))))
}

impl<'b> RankRequest<'b> {
    /// The question as it is once the parts that it names are fused.
    pub(super) fn fused(&self, resolved: Resolved) -> Result<Resolved, ApiError> {
        let Some(parts) = &self.fuse else {
            return match self.fuse_by {
                None => Ok(resolved),
                Some(_) => {
                    let detail =
                        "`fuse_by` says how the parts of `fuse` become one; there are none";
                    Err(ApiError::at(Code::InvalidField, "/fuse_by", detail))
                }
            };
        };
        if self.method.is_some() {
            let detail = "`fuse` names the methods; a question has either `method` or `fuse`";
            return Err(ApiError::at(Code::InvalidField, "/method", detail));
        }
        match parts.length {
            0 => return Err(ApiError::at(Code::EmptyList, "/fuse", "there are no parts to fuse")),
            length if length > MOST_PARTS => {
                let code = Code::TooManyItems;
                return Err(ApiError::beyond(code, "/fuse", "parts to fuse", MOST_PARTS, length));
            }
            _ => {}
        }
        let engine = &resolved.model.engine;
        let part = |(place, part)| part_of(part, place, engine);
        let parts = parts.items.iter().enumerate().map(part).collect::<Result<_, _>>()?;
        let by = self.fuse_by.unwrap_or_default().into();
        let fusion = Fusion::new(by, parts).map_err(|error| {
            let fuse = Pointer::from("/fuse");
            let pointer = match error {
                FuseError::Weight { part } => fuse.index(part).field("weight"),
                FuseError::Parts(_) | FuseError::NoWeight => fuse,
            };
            ApiError::at(Code::OutOfRange, pointer, error.to_string())
        })?;
        let fused = Fused::of_request(fusion);
        engine.check_fusion(&fused.fusion, &resolved.query).map_err(|(part, error)| {
            let of_part = Pointer::from("/fuse").index(part);
            ApiError::from(error).renamed(|pointer| pointer.within(of_part.clone()))
        })?;
        resolved.by(fused)
    }

    /// The candidates in the order of what the parts come to, what was wanted of them, and what was
    /// read.
    pub(super) fn fused_ranking(
        &self,
        fusion: &Fusion,
        plan: &Plan,
        app: &App,
        work: &JobContext,
    ) -> Result<(Ranking, RankOptions, Counts), ApiError> {
        let resolved = &plan.resolved;
        let (engine, contenders) = (&resolved.model.engine, self.contenders());
        let runs = runs(fusion, &contenders)?;
        let places = self.places(&contenders);
        let reads = fusion.methods().next().is_some();
        if reads {
            resolved.check_total(places.clone(), self.most_tokens(app))?;
        }
        let options = self.options(resolved)?;
        let in_parts = engine.fuses_in_parts(fusion);
        let per_part = if in_parts { plan.per_part() } else { contenders.len() };
        let go_on = || work.check().is_ok();
        let scores = work.in_parts_by(contenders.len(), per_part, |parts| {
            engine.fuse_session(self.query_text(), fusion, &resolved.query, |session| {
                parts.each(|part| contenders.score(part, session, go_on));
            })
        });
        let scores =
            scores.map_err(|error| resolved.explain(contenders.restored(error), places))?;
        // A part that was given up is not whole, and by then the job is late.
        work.check()?;
        Resolved::check_read(scores.counts.tokens as usize, self.most_tokens(app))?;
        let fused = scores.fused(fusion, &runs);
        let mut ranking = scores.ranking(&fused, &options, &contenders.all_boosts());
        contenders.restore(&mut ranking);
        let mut counts = ranking.counts;
        counts.add(Counts { texts: 1, ..Counts::default() });
        Ok((ranking, options, counts))
    }
}

/// A part as the engine has it.
fn part_of(part: &FusePart<'_>, place: usize, engine: &Engine) -> Result<Part, ApiError> {
    let of_part = Pointer::from("/fuse").index(place);
    let wrong = |field: &'static str, detail: &'static str| {
        let pointer = Pointer::from(field).within(of_part.clone());
        let faults = vec![Fault::at(Code::InvalidField, pointer)];
        Err(ApiError { faults, ..ApiError::about(Code::InvalidField, of_part.clone(), detail) })
    };
    let measure = part.measure.map(|MeasureName(measure)| measure);
    let source = match (&part.method, &part.scores) {
        (Some(method), None) => {
            let name = method.as_ref();
            if name.contains(':') {
                return wrong("/method", "is a fused method itself: name its parts");
            }
            let method = engine.method(name).map_err(|error| {
                ApiError::from(error).renamed(|pointer| pointer.within(of_part.clone()))
            })?;
            Source::Method(method, measure)
        }
        (None, Some(_)) if measure.is_some() => {
            return wrong("/measure", "has no method to be measured");
        }
        (None, Some(name)) => Source::Run(name.0.clone().into_owned()),
        _ => return wrong("", "has to have either `method` or `scores`"),
    };
    Ok(Part { source, weight: part.weight.map_or(1.0, |Score(weight)| weight) })
}

/// The numbers that candidates bring, for each name that the fusion wants; or each place where one is
/// missing, as many as are told.
fn runs(fusion: &Fusion, contenders: &Candidates<'_, '_>) -> Result<Vec<Vec<f64>>, ApiError> {
    let mut missing: Vec<(usize, &str)> = Vec::new();
    let mut runs = Vec::new();
    for (_, name) in fusion.runs() {
        let mut run = Vec::with_capacity(contenders.len());
        for (at, candidate) in contenders.each().enumerate() {
            let score = candidate.scores().and_then(|scores| scores.of(name));
            if score.is_none() && missing.len() < MOST_ITEMS {
                missing.push((contenders.place(at), name));
            }
            run.push(score.unwrap_or(f64::NEG_INFINITY));
        }
        runs.push(run);
    }
    let Some(&(place, name)) = missing.first() else { return Ok(runs) };
    let candidate = |place: usize| Pointer::from("/candidates").index(place);
    let fault = |&(place, name): &(usize, &str)| {
        let scores = candidate(place).field("scores");
        Fault::at(Code::InvalidField, scores.then(Segment::Key(name.into())))
    };
    let faults = missing.iter().map(fault).collect();
    let detail = format!("has no number `{name}` under `scores`");
    Err(ApiError { faults, ..ApiError::about(Code::InvalidField, candidate(place), detail) })
}
