//! A text prepared for every method of a fusion: candidates are read once, whatever the number of
//! methods.

use crate::engine::fuse::Fusion;
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Item, Place, Query, QueryError, Ranked, Ranking, finite};
use crate::methods::{Against, Info, Posts, Reads, Scorer, Scratch};
use crate::model::Phrase;

/// Candidates looked up and scored at once, as in a ranking by one method.
const BLOCK: usize = 32;

impl Engine {
    /// The fused score of each candidate, in the double precision that ranks them, negative
    /// infinity for a candidate that no part scores; and the candidates that were cut short.
    /// Without a text only the caller's runs score. `runs` are in the order in which the fusion
    /// names them.
    pub fn fused_scores<T: AsRef<str>>(
        &self,
        text: Option<&str>,
        candidates: &[T],
        (fusion, runs): (&Fusion, &[Vec<f64>]),
        query: &Query,
    ) -> Result<(Vec<f64>, Vec<usize>), QueryError> {
        let score = |session: &mut FuseSession<'_, '_>| session.score(candidates, || true);
        let parts = match text {
            Some(text) => self.fuse_session(text, fusion, query, score)??,
            None => Vec::new(),
        };
        let scores = fusion.scores(&parts, runs, candidates.len());
        let notes = parts.into_iter().next().unwrap_or_default();
        Ok((scores, notes.truncated))
    }

    /// Prepares a text for the methods of a fusion, to score any number of lists of candidates.
    pub(in crate::engine) fn fuse_session<R>(
        &self,
        text: &str,
        fusion: &Fusion,
        query: &Query,
        run: impl FnOnce(&mut FuseSession<'_, '_>) -> R,
    ) -> Result<R, QueryError> {
        let mut workspace = Workspace::with_memory(&self.model);
        let mut one = workspace.phrase();
        let reading = Query { method: fusion.reading(query.method), ..*query };
        let query_truncated = self.read(&mut one, text, &reading, Place::Query)?;
        let mut scorings = Vec::new();
        for (_, method, measure) in fusion.methods() {
            let info = method.info();
            let asked = Query { method, measure, ..*query };
            let scorer = self.scorer_of(&asked)?;
            let measure = self.measure(scorer, info, &asked)?;
            // Each method has its own memory, since all are prepared at once.
            let mut scratch = Scratch::default();
            let known = query.ranks_for(&one, info);
            if !known {
                query.accepts_unknown(Place::Query)?;
            }
            let against = known.then(|| scorer.against(measure, &one, &mut scratch));
            let whole = matches!(scorer, Scorer::RankList(_));
            scorings.push(Scoring { info, whole, against, scratch });
        }
        let mut session = FuseSession {
            engine: self,
            query: reading,
            query_truncated,
            query_share: query.told_share(&one),
            scorings,
            free: Vec::new(),
            workspace: &mut workspace,
        };
        let ran = run(&mut session);
        session.end();
        workspace.take_back([one]);
        Ok(ran)
    }
}

pub(in crate::engine) struct FuseSession<'s, 'e> {
    engine: &'e Engine,
    query: Query,
    query_truncated: bool,
    /// The share of listed words of the query, if requested.
    query_share: Option<f32>,
    /// A scoring for each method, in the order of the fusion.
    scorings: Vec<Scoring<'s>>,
    free: Vec<Phrase<'e>>,
    workspace: &'s mut Workspace<'e>,
}

struct Scoring<'s> {
    info: &'static Info,
    /// Whether a candidate's score depends on the tokens of the other candidates.
    whole: bool,
    /// `None` if the query has nothing to be scored by.
    against: Option<Box<dyn Against + 's>>,
    scratch: Scratch,
}

/// Candidates that were read.
#[derive(Default)]
struct Group<'e> {
    phrases: Vec<Phrase<'e>>,
    indexes: Vec<usize>,
}

/// Candidates with a known word, and those with tokens alone: a method that needs words must not
/// see the latter.
#[derive(Default)]
struct Read<'e> {
    worded: Group<'e>,
    bare: Group<'e>,
}

impl<'e> FuseSession<'_, 'e> {
    pub(in crate::engine) fn score<T: AsRef<str>>(
        &mut self,
        candidates: &[T],
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Vec<Ranking>, QueryError> {
        let mut notes = Ranking {
            query_truncated: self.query_truncated,
            query_known: self.query_share,
            ..Ranking::default()
        };
        if self.scorings.is_empty() {
            // The caller's runs alone: no text has to be read.
            return Ok(vec![notes]);
        }
        let mut scored: Vec<Vec<Ranked>> = Vec::with_capacity(self.scorings.len());
        scored.resize_with(self.scorings.len(), || Vec::with_capacity(candidates.len()));
        // For methods that score candidates as a list, only the tokens are stored.
        let (mut posts, mut places) = (Posts::default(), Vec::new());
        let keeps = self.scorings.iter().any(|scoring| scoring.whole);
        for (number, chunk) in candidates.chunks(BLOCK).enumerate() {
            if !go_on() {
                break;
            }
            let read = self.read_block(chunk, number * BLOCK, &mut notes)?;
            for (scoring, scored) in self.scorings.iter_mut().zip(&mut scored) {
                if !scoring.whole {
                    let Read { worded, bare } = &read;
                    scoring.score(&worded.phrases, &worded.indexes, scored)?;
                    if scoring.info.reads == Reads::Tokens {
                        scoring.score(&bare.phrases, &bare.indexes, scored)?;
                    }
                }
            }
            for Group { phrases, indexes } in [read.worded, read.bare] {
                if keeps {
                    phrases.iter().for_each(|phrase| posts.push(phrase));
                    places.extend(indexes);
                }
                self.free.extend(phrases);
            }
        }
        let scorings = self.scorings.iter_mut().zip(&mut scored);
        for (scoring, scored) in scorings.filter(|(scoring, _)| scoring.whole) {
            scoring.score_list(&posts, &places, scored)?;
        }
        let mut notes = Some(notes);
        let ranking =
            |results: Vec<Ranked>| Ranking { results, ..notes.take().unwrap_or_default() };
        Ok(scored.into_iter().map(ranking).collect())
    }

    fn end(self) {
        self.workspace.take_back(self.free);
    }

    fn read_block<T: AsRef<str>>(
        &mut self,
        block: &[T],
        first: usize,
        answer: &mut Ranking,
    ) -> Result<Read<'e>, QueryError> {
        let query = self.query;
        let needs_words = self.scorings.iter().any(|scoring| scoring.info.reads == Reads::Words);
        let mut read = Read::default();
        for (place, candidate) in block.iter().enumerate() {
            let index = first + place;
            let place = Place::Candidate(index);
            let mut phrase = self.free.pop().unwrap_or_else(|| self.workspace.phrase());
            let item = self.engine.read_item(&mut phrase, candidate.as_ref(), &query, place)?;
            if item.is_cut() {
                answer.truncated.push(index);
            }
            answer.counts.saw(&phrase);
            if query.coverage {
                answer.known.push(phrase.known_share());
            }
            if let Item::Left(reason) = item {
                answer.unscored.push(index);
                answer.reasons.push(reason);
                self.free.push(phrase);
                continue;
            }
            let group = match (phrase.words().is_empty(), phrase.tokens().is_empty()) {
                (false, _) => &mut read.worded,
                (true, tokenless) => {
                    if needs_words || tokenless {
                        query.accepts_unknown(place)?;
                    }
                    if tokenless {
                        self.free.push(phrase);
                        continue;
                    }
                    &mut read.bare
                }
            };
            group.phrases.push(phrase);
            group.indexes.push(index);
        }
        Ok(read)
    }
}

impl Scoring<'_> {
    fn score(
        &mut self,
        phrases: &[Phrase<'_>],
        indexes: &[usize],
        scored: &mut Vec<Ranked>,
    ) -> Result<(), QueryError> {
        let Some(against) = self.against.as_mut().filter(|_| !phrases.is_empty()) else {
            return Ok(());
        };
        let mut scores = vec![0.0; phrases.len()];
        against.score(phrases, &mut scores, &mut self.scratch);
        self.note(&scores, indexes, scored)
    }

    fn score_list(
        &mut self,
        posts: &Posts,
        indexes: &[usize],
        scored: &mut Vec<Ranked>,
    ) -> Result<(), QueryError> {
        let Some(against) = self.against.as_mut().filter(|_| !posts.is_empty()) else {
            return Ok(());
        };
        let mut scores = vec![0.0; posts.len()];
        against.score_list(posts, &mut scores);
        self.note(&scores, indexes, scored)
    }

    fn note(
        &self,
        scores: &[f32],
        indexes: &[usize],
        scored: &mut Vec<Ranked>,
    ) -> Result<(), QueryError> {
        for (&index, &score) in indexes.iter().zip(scores) {
            scored.push(Ranked { index, score: finite(score, self.info)? });
        }
        Ok(())
    }
}
