//! A ranking in progress: candidates in one part or in many, on one thread or on several, and the
//! pages that are made of all parts.

use std::ops::Range;

use crate::engine::rank::liked::Sides;
use crate::engine::rank::{Asked, Candidates, Question, UnscoredLikes};
use crate::engine::{Counts, Engine, Page, Parts, Place, QueryError, Ranking};

/// The rankings of some candidates of a question, from which [`Engine::pages`] makes pages.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Partial {
    /// A ranking for each query or for liked texts; in a fusion, for each method.
    rankings: Vec<Ranking>,
    unscored: UnscoredLikes,
    /// Whether it was cancelled and is incomplete.
    gave_up: bool,
}

impl Partial {
    /// What was read of the candidates.
    pub fn counts(&self) -> Counts {
        self.rankings.first().map(|ranking| ranking.counts).unwrap_or_default()
    }

    /// The liked and disliked texts that count in no score.
    pub fn unscored(&self) -> &UnscoredLikes {
        &self.unscored
    }
}

impl From<Vec<Ranking>> for Partial {
    fn from(rankings: Vec<Ranking>) -> Self {
        Self { rankings, ..Self::default() }
    }
}

impl From<Ranking> for Partial {
    fn from(ranking: Ranking) -> Self {
        vec![ranking].into()
    }
}

impl Parts for Partial {
    fn append(&mut self, part: Self, first: usize) {
        let length = self.rankings.len().max(part.rankings.len());
        self.rankings.resize_with(length, Ranking::default);
        for (whole, part) in self.rankings.iter_mut().zip(part.rankings) {
            whole.append(part, first);
        }
        self.unscored = part.unscored;
        self.gave_up |= part.gave_up;
    }
}

/// The pages of a question.
#[derive(Debug, Clone)]
pub struct Pages {
    /// A page for each query, or one for liked texts.
    pub pages: Vec<Page>,
    /// The liked and disliked texts that count in no score.
    pub unscored: UnscoredLikes,
    /// Counts of what was read, the query included.
    pub counts: Counts,
}

impl Pages {
    /// The page of one query or of liked texts.
    pub fn one(&self) -> Option<&Page> {
        self.pages.first()
    }
}

type Run<'s> =
    dyn FnMut(Range<usize>, &mut dyn FnMut() -> bool) -> Result<Partial, QueryError> + 's;

/// A question in progress, whose texts were read: see [`Engine::rank_session`].
pub struct Session<'s>(&'s mut Run<'s>);

impl Session<'_> {
    /// Ranks the candidates of these indices among the ranked ones. `go_on` is called repeatedly;
    /// once it returns false, the part is incomplete. Errors count candidates from the part's
    /// beginning.
    pub fn run(
        &mut self,
        part: Range<usize>,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Partial, QueryError> {
        let mut gave_up = false;
        let partial = (self.0)(part, &mut || {
            gave_up = gave_up || !go_on();
            !gave_up
        })?;
        Ok(Partial { gave_up, ..partial })
    }
}

/// # Rankings as they are asked for
impl Engine {
    /// Reads the texts of a question once, to rank any number of parts of the candidates: a single
    /// part unless [`Question::is_in_parts`]. Memory and lookups of one part serve the next, and
    /// change no bit of a score.
    pub fn rank_session<T: AsRef<str>, R>(
        &self,
        question: &Question<'_>,
        candidates: &Candidates<'_, T>,
        run: impl FnOnce(&mut Session<'_>) -> R,
    ) -> Result<R, QueryError> {
        self.check_opposes(question)?;
        let options = &question.options(candidates.are_grouped());
        let query = &question.query;
        let of_part = |part: Range<usize>| candidates.part(part);
        match (&question.asked, question.fusion.as_deref(), candidates.kept()) {
            (Asked::One(text), Some(fusion), _) => {
                self.fuse_session(text, fusion, query, |session| {
                    run(&mut Session(&mut |part, go_on| {
                        Ok(session.score(of_part(part).0, go_on)?.into())
                    }))
                })
            }
            (_, Some(_), _) => Err(QueryError::OnlyRanks { method: "a fusion" }),
            (Asked::Nothing, None, _) => Ok(run(&mut Session(&mut |part, _| {
                let (texts, boosts) = of_part(part);
                Ok(boosts.ranking(texts.len(), options)?.into())
            }))),
            (Asked::One(text), None, None) => self.with_text_session(text, options, |session| {
                run(&mut Session(&mut |part, go_on| {
                    let (texts, boosts) = of_part(part);
                    Ok(session.rank_boosted(texts, &boosts, go_on)?.into())
                }))
            }),
            (Asked::Each(texts), None, None) => {
                let asked = self.read_asked(texts, query, Place::QueryOf)?;
                Ok(run(&mut Session(&mut |part, go_on| {
                    let (texts, boosts) = of_part(part);
                    Ok(self.rank_each(&asked, texts, &boosts, options, go_on)?.into())
                })))
            }
            (Asked::Likes(likes), None, kept) => {
                self.check_likes(query)?;
                let sides = Sides::read(self, likes, query)?;
                Ok(run(&mut Session(&mut |part, go_on| {
                    let (texts, boosts) = of_part(part.clone());
                    let asked = (&sides, likes);
                    let ranking = match kept {
                        None => self.rank_liked(asked, texts, &boosts, options, go_on)?,
                        Some(kept) => {
                            let kept = kept.get(part).unwrap_or_default();
                            self.rank_kept(asked, (kept, texts), &boosts, options, go_on)?
                        }
                    };
                    Ok(Partial { unscored: sides.unscored.clone(), ..ranking.into() })
                })))
            }
            (Asked::One(_) | Asked::Each(_), None, Some(kept)) => {
                let side = |(place, text): (Place, &str)| Sides::one(self, text, query, place);
                let sides: Vec<Sides<'_>> =
                    question.asked.texts().map(side).collect::<Result<_, _>>()?;
                let unchanged = Default::default();
                Ok(run(&mut Session(&mut |part, go_on| {
                    let (texts, boosts) = of_part(part.clone());
                    let kept = (kept.get(part).unwrap_or_default(), texts);
                    let rank = |side| {
                        self.rank_kept((side, &unchanged), kept, &boosts, options, &mut *go_on)
                    };
                    Ok(sides.iter().map(rank).collect::<Result<Vec<_>, _>>()?.into())
                })))
            }
        }
    }

    /// Makes the pages of a question from the rankings of all its candidates. `check` is called
    /// repeatedly, first of all if a part was cancelled, and its error ends the work.
    pub fn pages<T: AsRef<str>, E: From<QueryError>>(
        &self,
        question: &Question<'_>,
        candidates: &Candidates<'_, T>,
        ranked: Partial,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Pages, E> {
        if ranked.gave_up {
            check()?;
        }
        let options = question.options(candidates.are_grouped());
        let mut counts = ranked.counts();
        counts.texts += question.asked.texts().count() as u64;
        let mut rankings = ranked.rankings;
        match &question.fusion {
            None => rankings.iter_mut().for_each(|ranking| ranking.order(&options)),
            Some(fusion) => {
                let scores = fusion.scores(&rankings, candidates.runs(), candidates.ranked().len());
                rankings.truncate(1);
                let notes = rankings.pop().unwrap_or_default();
                rankings.push(notes.fused(&scores, &options, &candidates.boosts()));
            }
        }
        let mut pages = Vec::with_capacity(rankings.len());
        for (place, mut ranking) in rankings.into_iter().enumerate() {
            candidates.restore(&mut ranking);
            if candidates.are_grouped() {
                let most = question.page.needed().unwrap_or(usize::MAX);
                candidates.leave_best_of_groups(&mut ranking, most);
            }
            pages.push(self.page(ranking, candidates.all(), (question, place), &mut check)?);
        }
        Ok(Pages { pages, unscored: ranked.unscored, counts })
    }

    /// Ranks all candidates and makes the pages that are asked for. `check` is asked again and again, and
    /// ends the work by its error.
    ///
    /// ```
    /// use cognate::engine::rank::{Candidates, Question};
    /// use cognate::engine::{PageOptions, QueryError};
    ///
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    /// # let engine = cognate::Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    /// let query = cognate::Query::new(engine.method("auto")?);
    /// let page = PageOptions { explain: true, top_k: Some(1), ..PageOptions::default() };
    /// let question = Question { page, ..Question::new("earthquake", query) };
    /// let texts = Candidates::new(&["football results", "quake hits city"]);
    /// let found = engine.rank_pages(&question, &texts, || Ok::<_, QueryError>(()))?;
    /// let best = found.pages[0].results().next().ok_or("nothing was found")?;
    /// assert_eq!((best.index, best.reason.is_some()), (1, true));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rank_pages<T: AsRef<str>, E: From<QueryError>>(
        &self,
        question: &Question<'_>,
        candidates: &Candidates<'_, T>,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Pages, E> {
        let all = 0..candidates.ranked().len();
        let run = |session: &mut Session<'_>| session.run(all, || check().is_ok());
        let ranked = self.rank_session(question, candidates, run).and_then(|ranked| ranked);
        let ranked = ranked.map_err(|error| candidates.restored(error))?;
        self.pages(question, candidates, ranked, check)
    }
}
