//! A page of a ranking: duplicates merged, the best varied, the results from an offset on, and
//! their reasons. How a page is requested and written is not known here.

use std::collections::HashMap;

use crate::engine::explain::{ExplainedWord, Explanation, UnknownToken};
use crate::engine::rank::{Asked, BLOCK, Diversify, Duplicate, Likes, Question};
use crate::engine::{Engine, Oppositions, Query, QueryError, Ranked, Ranking};

/// The settings of a page.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PageOptions {
    /// How many of the first results are skipped.
    pub offset: usize,
    /// Most results behind the offset; `None` means all.
    pub top_k: Option<usize>,
    /// The similarity at which a candidate is a duplicate of a better candidate.
    pub collapse: Option<f32>,
    /// Whether, and how much, results should differ.
    pub diversify: Option<Diversify>,
    /// Whether the words with the largest shares of the first scores are wanted.
    pub explain: bool,
    /// Whether candidates that are opposed to the query are left out, where the model knows opposites.
    pub drop_opposed: bool,
}

impl PageOptions {
    /// Most results of a page that are explained.
    pub const MAX_EXPLAINED: usize = 20;
    /// Words of an explanation.
    pub const WORDS: usize = 5;

    /// Number of results up to the end of the page; `None` means all.
    pub fn end(&self) -> Option<usize> {
        self.top_k.map(|most| most.saturating_add(self.offset))
    }

    /// Returns how many of the best candidates are reordered.
    pub fn pool(&self) -> usize {
        let most = Diversify::MAX_POOL;
        let of_page = || self.top_k.map_or(most, |wanted| wanted.saturating_mul(Diversify::POOL));
        self.diversify.map_or(0, |diversify| diversify.pool.unwrap_or_else(of_page).min(most))
    }

    /// Number of candidates that are needed in the order of their scores; `None` means all, as
    /// duplicates and opposed candidates may be anywhere.
    pub fn needed(&self) -> Option<usize> {
        let any = self.collapse.is_some() || self.drop_opposed;
        self.end().filter(|_| !any).map(|end| end.max(self.pool()))
    }
}

/// One of two texts that were compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The query, or the liked text.
    Query,
    /// The candidate.
    Candidate,
    /// Both, in whatever form.
    Both,
}

/// A word that speaks for a result.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = SharedWord))]
pub struct WordShare {
    /// The token that was looked up; if several forms of it occur, the form that adds most.
    pub token: String,
    /// Which text it stands in.
    pub of: Side,
    /// The token's share of the score, in all forms and in both texts together.
    pub share: f32,
}

impl std::fmt::Display for WordShare {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = match self.of {
            Side::Query => "query",
            Side::Candidate => "candidate",
            Side::Both => "both",
        };
        write!(f, "{} ({of}, {:.2})", self.token, self.share)
    }
}

impl Explanation {
    /// The words with the largest shares, the largest first; of equal shares those of the query, in
    /// the order of the text. Capital letters and an English plural make no other word. A token
    /// without a letter, such as a number, is not the first if there is a word.
    pub(super) fn largest_shares(&self, most: usize) -> Vec<WordShare> {
        let tokens = |words: &'_ [ExplainedWord], unknown: &'_ [UnknownToken], of: Side| {
            let words = words.iter().map(|word| (word.token.clone(), word.share));
            let unknown = unknown.iter().map(|token| (token.token.clone(), token.share));
            let shared = words.chain(unknown);
            let shared =
                shared.filter_map(|(token, share)| Some(WordShare { token, of, share: share? }));
            shared.collect::<Vec<_>>()
        };
        let mut all = tokens(&self.one, &self.one_unknown, Side::Query);
        all.extend(tokens(&self.other, &self.other_unknown, Side::Candidate));
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        let mut words: Vec<WordShare> = Vec::new();
        for one in all {
            match words.iter_mut().find(|word| is_same_word(&word.token, &one.token)) {
                Some(word) => {
                    word.share += one.share;
                    word.of = if word.of == one.of { word.of } else { Side::Both };
                }
                None => words.push(one),
            }
        }
        words.retain(|word| word.share > 0.0);
        words.sort_by(|a, b| b.share.total_cmp(&a.share));
        let has_letter = |word: &WordShare| word.token.chars().any(char::is_alphabetic);
        if let Some(first) = words.iter().position(has_letter) {
            words.get_mut(..=first).into_iter().for_each(|front| front.rotate_right(1));
        }
        words.truncate(most);
        words
    }
}

/// Letters of the shortest word that has a plural: shorter ones with an `s` are other words, as
/// `is`.
const SHORTEST: usize = 3;

/// Whether two tokens are the same but for capital letters and an English plural.
fn is_same_word(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    if short == long {
        return true;
    }
    let is_plural = |stem: &str, end: &str| long.strip_suffix(end) == Some(stem);
    short.chars().count() >= SHORTEST
        && (is_plural(&short, "s")
            || is_plural(&short, "es")
            || short.strip_suffix('y').is_some_and(|stem| is_plural(stem, "ies")))
}

/// Why a candidate is a result.
#[derive(Debug, Clone, PartialEq)]
pub struct ResultReason {
    /// The index of the liked text that the result is most similar to, weights included.
    pub like: Option<usize>,
    /// The words with the largest shares of the score.
    pub words: Vec<WordShare>,
}

/// A page of a ranking.
#[derive(Debug, Clone)]
pub struct Page {
    /// The ranking up to the end of the page.
    pub ranking: Ranking,
    offset: usize,
    end: usize,
    lists_unscored: bool,
    duplicates: HashMap<usize, Vec<Duplicate>>,
    reasons: Vec<ResultReason>,
    /// How the results of the page are opposed to the query, if requested.
    opposes: Option<Vec<Oppositions>>,
    /// Whether they are related to the query, if there is a threshold.
    related: Option<Vec<bool>>,
}

/// A result of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageResult<'p> {
    /// The candidate's index.
    pub index: usize,
    /// The candidate's score, if it has a score.
    pub score: Option<f32>,
    /// Candidates that were merged into it, best first.
    pub duplicates: &'p [Duplicate],
    /// Why it is a result, if requested.
    pub reason: Option<&'p ResultReason>,
    /// How it is opposed to the query, if requested; empty if it has no score.
    pub opposes: Option<Oppositions>,
    /// Whether it is [related](Query::related) to the query, if there is a threshold and it has a
    /// score.
    pub related: Option<bool>,
}

impl Page {
    /// The results of the page, best first; the unscored last, unless there is a least score.
    pub fn results(&self) -> impl Iterator<Item = PageResult<'_>> {
        let Self { ranking, lists_unscored, .. } = self;
        let scored = ranking.results.iter().map(|ranked| (ranked.index, Some(ranked.score)));
        let unscored = ranking.unscored.iter().filter(|_| *lists_unscored);
        let listed = scored.chain(unscored.map(|&index| (index, None)));
        let listed = listed.take(self.end).skip(self.offset);
        listed.enumerate().map(|(place, (index, score))| PageResult {
            index,
            score,
            duplicates: self.duplicates.get(&index).map_or(&[], Vec::as_slice),
            reason: self.reasons.get(place),
            opposes: self.opposes.as_ref().map(|told| told.get(place).copied().unwrap_or_default()),
            related: self.related.as_ref().and_then(|told| told.get(place).copied()),
        })
    }
}

impl Engine {
    /// Makes the page of one of a question's rankings, by its index. `check` is called repeatedly,
    /// and its error ends the work.
    pub(super) fn page<T: AsRef<str>, E: From<QueryError>>(
        &self,
        ranking: Ranking,
        candidates: &[T],
        (question, place): (&Question<'_>, usize),
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Page, E> {
        let Question { asked, query, page, .. } = question;
        // `None` for liked texts, or without a text.
        let text = asked.queries().get(place).map(AsRef::as_ref);
        let end = page.end().unwrap_or(usize::MAX);
        let mut made = Page {
            ranking,
            offset: page.offset,
            end,
            lists_unscored: question.min_score.is_none(),
            duplicates: HashMap::new(),
            reasons: Vec::new(),
            opposes: None,
            related: None,
        };
        let results = &mut made.ranking.results;
        let most = end.max(page.pool());
        if let Some(text) = text.filter(|_| page.drop_opposed) {
            // Duplicates may be anywhere.
            let most = if page.collapse.is_some() { usize::MAX } else { most };
            self.drop_opposed(results, candidates, text, most, query, &mut check)?;
        }
        if let Some(least) = page.collapse {
            let folds = self.collapse(results, candidates, (least, most), query, &mut check)?;
            results.clear();
            for fold in folds {
                results.push(fold.best);
                if !fold.duplicates.is_empty() {
                    made.duplicates.insert(fold.best.index, fold.duplicates);
                }
            }
        }
        if let Some(Diversify { lambda, .. }) = page.diversify {
            let pool = page.pool().min(results.len());
            let pool = results.get_mut(..pool).unwrap_or_default();
            self.diversify(pool, candidates, (lambda, end), query, &mut check)?;
        }
        results.truncate(end);
        if page.explain && !asked.is_nothing() {
            let explained = results.iter().skip(page.offset).take(PageOptions::MAX_EXPLAINED);
            for &Ranked { index, .. } in explained {
                check()?;
                let candidate = candidates.get(index).map_or("", AsRef::as_ref);
                made.reasons.push(self.reason((asked, text), candidate, query)?);
            }
        }
        let told = text.filter(|_| query.opposes);
        made.opposes = told.map(|_| Vec::new());
        made.related = query.threshold.filter(|_| !asked.is_nothing()).map(|_| Vec::new());
        if told.is_some() || made.related.is_some() {
            for block in results.get(page.offset..).unwrap_or_default().chunks(BLOCK) {
                check()?;
                let texts = block.iter();
                let texts = texts.map(|one| candidates.get(one.index).map_or("", AsRef::as_ref));
                let texts: Vec<&str> = texts.collect();
                if let (Some(text), Some(opposes)) = (told, &mut made.opposes) {
                    opposes.extend(self.opposes_each(text, &texts, query)?);
                }
                let scored: Vec<_> = block.iter().map(|one| one.score).zip(texts).collect();
                if let Some(related) = &mut made.related {
                    let more = self.related_each(text, &scored, query)?;
                    related.extend(more.unwrap_or_default());
                }
            }
        }
        Ok(made)
    }

    fn drop_opposed<T: AsRef<str>, E: From<QueryError>>(
        &self,
        results: &mut Vec<Ranked>,
        candidates: &[T],
        text: &str,
        most: usize,
        query: &Query,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut left = Vec::new();
        for block in results.chunks(BLOCK) {
            if left.len() >= most {
                break;
            }
            check()?;
            let texts = block.iter().map(|one| candidates.get(one.index).map_or("", AsRef::as_ref));
            let texts: Vec<&str> = texts.collect();
            let kinds = self.opposes_each(text, &texts, query)?;
            let both = block.iter().zip(kinds);
            left.extend(both.filter(|(_, kinds)| kinds.is_empty()).map(|(one, _)| *one));
        }
        *results = left;
        Ok(())
    }

    fn reason(
        &self,
        (asked, text): (&Asked<'_>, Option<&str>),
        candidate: &str,
        query: &Query,
    ) -> Result<ResultReason, QueryError> {
        let (text, like) = match asked.likes() {
            Some(likes) => self.nearest_liked(likes, candidate, query)?,
            None => (text.unwrap_or_default(), None),
        };
        let explained = self.explain(text, candidate, query)?;
        if explained.shares.is_none() && !explained.unscored {
            return Err(QueryError::NoShares { method: query.method.name() });
        }
        Ok(ResultReason { like, words: explained.largest_shares(PageOptions::WORDS) })
    }

    /// The liked text with the best weighted score, and its index.
    fn nearest_liked<'l>(
        &self,
        likes: &'l Likes<'_>,
        candidate: &str,
        query: &Query,
    ) -> Result<(&'l str, Option<usize>), QueryError> {
        let texts: Vec<&str> = likes.liked.iter().map(|liked| &*liked.text).collect();
        // Scores are the same in either order of the texts.
        let ranking = self.rank(candidate, &texts, query)?;
        let weighted = ranking.results.iter().filter_map(|ranked| {
            let liked = likes.liked.get(ranked.index)?;
            let score = f64::from(liked.weight.get()) * f64::from(ranked.score);
            Some((score, ranked.index, &*liked.text))
        });
        let better =
            |a: &(f64, usize, &str), b: &(f64, usize, &str)| b.0 > a.0 || (b.0 == a.0 && b.1 < a.1);
        let best = weighted.reduce(|a, b| if better(&a, &b) { b } else { a });
        Ok(best.map_or(("", None), |(_, index, text)| (text, Some(index))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::BoostBy;
    use crate::engine::rank::Candidates;
    use crate::methods::Method;

    const TEXTS: [&str; 8] = [
        "Strong earthquake shakes Lima",
        "strong earthquake shakes Lima!",
        "An earthquake in Peru",
        "my cat sleeps on the keyboard",
        "",
        "Quake hits the capital of Peru",
        "earthquake damages houses in Lima",
        "Floods in the north of Peru",
    ];

    fn engine() -> Engine {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
        Engine::open(path.as_ref(), &Default::default()).unwrap()
    }

    fn go_on() -> Result<(), QueryError> {
        Ok(())
    }

    fn page_of(engine: &Engine, page: &PageOptions) -> Page {
        let query = Query::new(Method::AvgCos);
        let question = Question { page: *page, ..Question::new("earthquake in Lima", query) };
        made_of(engine, &question, &Candidates::new(&TEXTS))
    }

    fn made_of(engine: &Engine, question: &Question<'_>, texts: &Candidates<'_, &str>) -> Page {
        engine.rank_pages(question, texts, go_on).unwrap().pages.remove(0)
    }

    fn indexes(page: &Page) -> Vec<usize> {
        page.results().map(|result| result.index).collect()
    }

    #[test]
    fn what_is_needed_follows_from_the_page() {
        let ten = PageOptions { top_k: Some(10), offset: 5, ..PageOptions::default() };
        assert_eq!((ten.end(), ten.pool(), ten.needed()), (Some(15), 0, Some(15)));
        let varied = PageOptions { diversify: Some(Diversify::default()), ..ten };
        assert_eq!((varied.pool(), varied.needed()), (40, Some(40)));
        let many = PageOptions { top_k: Some(999), ..varied };
        assert_eq!((many.pool(), many.needed()), (1000, Some(1004)));
        let own = Diversify { pool: Some(7), ..Diversify::default() };
        assert_eq!(PageOptions { diversify: Some(own), ..ten }.needed(), Some(15));
        let merged = PageOptions { collapse: Some(0.9), ..ten };
        assert_eq!((merged.end(), merged.needed()), (Some(15), None));
        assert_eq!(PageOptions { diversify: Some(own), ..PageOptions::default() }.needed(), None);
    }

    #[test]
    fn pages_are_slices_of_the_whole_list() {
        let engine = engine();
        let collapse = Some(0.95);
        let diversify = Some(Diversify { lambda: 0.5, pool: Some(8) });
        for (collapse, diversify) in
            [(None, None), (collapse, None), (None, diversify), (collapse, diversify)]
        {
            let whole = PageOptions { collapse, diversify, ..PageOptions::default() };
            let all = indexes(&page_of(&engine, &whole));
            for (offset, top_k) in [(0, 3), (2, 2), (6, 5), (9, 1)] {
                let page = PageOptions { offset, top_k: Some(top_k), ..whole };
                let expected: Vec<usize> = all.iter().copied().skip(offset).take(top_k).collect();
                assert_eq!(indexes(&page_of(&engine, &page)), expected, "{page:?}");
            }
        }
    }

    #[test]
    fn duplicates_stand_with_the_result_that_they_were_merged_into() {
        let page = PageOptions {
            collapse: Some(0.99),
            top_k: Some(3),
            explain: true,
            ..Default::default()
        };
        let made = page_of(&engine(), &page);
        let merged: Vec<usize> = made
            .results()
            .flat_map(|result| result.duplicates.iter().map(|duplicate| duplicate.ranked.index))
            .collect();
        assert_eq!(merged, [1]);
        for result in made.results() {
            let words = &result.reason.unwrap().words;
            assert!(!words.is_empty() && words.len() <= PageOptions::WORDS);
            assert!(words.is_sorted_by(|a, b| a.share >= b.share));
        }
    }

    /// Explains rankings by every method of texts with numbers, repeated words and plurals.
    #[test]
    fn no_word_is_told_twice_and_no_number_first() {
        let engine = engine();
        let texts = [
            "11 pianists, 11 pianos: a pianist born on 11 11 1911",
            "Pianist, born 11 November 1911",
            "11 11",
            "Cities and city walls of 1204",
            "The walls of a CITY, 1204, and its churches",
            "church bells 1204 1204 1204 xqzvw 7",
            "news of a new box, of boxes and of 2 foxes",
        ];
        let (mut explained, mut numbers) = (0, 0);
        for method in Method::ALL {
            let query = Query::new(*method);
            if engine.check_explain(&query).is_err() {
                continue;
            }
            for (one, other) in texts.iter().flat_map(|one| texts.map(|other| (one, other))) {
                let made = engine.explain(one, other, &query).unwrap();
                if made.shares.is_none() {
                    continue;
                }
                let all = made.largest_shares(usize::MAX);
                let is_number = |word: &WordShare| !word.token.chars().any(char::is_alphabetic);
                let first = all.iter().position(|word| !is_number(word));
                assert!([None, Some(0)].contains(&first), "{method:?}, {one} / {other}: {all:?}");
                let behind = all.get(1..).unwrap_or_default();
                assert!(behind.is_sorted_by(|a, b| a.share >= b.share), "{all:?}");
                for (place, word) in all.iter().enumerate() {
                    let again =
                        all[place + 1..].iter().find(|b| is_same_word(&word.token, &b.token));
                    assert_eq!(again, None, "{method:?}, {one} / {other}");
                    assert!(word.share > 0.0);
                }
                let mut few = all.clone();
                few.truncate(2);
                assert_eq!(made.largest_shares(2), few);
                explained += 1;
                numbers += usize::from(all.iter().any(is_number));
            }
        }
        assert!(explained > 400 && numbers > 100, "{explained}, {numbers}");
        for (one, other) in [("city", "Cities"), ("box", "boxes"), ("Flood", "floods")] {
            assert!(is_same_word(one, other) && is_same_word(other, one));
        }
        for (one, other) in [("is", "i"), ("care", "car"), ("glass", "gla"), ("1", "1s")] {
            assert!(!is_same_word(one, other), "{one} {other}");
        }
    }

    #[test]
    fn liked_texts_explain_and_a_check_ends_the_work() {
        let engine = engine();
        let likes = Likes::any_of(["cats and keyboards", "earthquake"]);
        let page = PageOptions { explain: true, top_k: Some(5), ..PageOptions::default() };
        let question = Question { page, ..Question::new(likes, Query::new(Method::AvgCos)) };
        let all = Candidates::new(&TEXTS);
        let made = made_of(&engine, &question, &all);
        for result in made.results() {
            let expected = if result.index == 3 { 0 } else { 1 };
            assert_eq!(result.reason.unwrap().like, Some(expected), "{result:?}");
        }
        let stop = || Err(QueryError::NoShares { method: "stopped" });
        let stopped = engine.rank_pages(&question, &all, stop);
        assert_eq!(stopped.unwrap_err(), QueryError::NoShares { method: "stopped" });
    }

    #[test]
    fn who_is_excluded_keeps_its_place_and_boosts_count() {
        let engine = engine();
        let candidates = Candidates::new(&TEXTS)
            .without(|text| text.starts_with("strong"))
            .boosted(BoostBy::Add, |text| text.contains("cat").then_some(2.0));
        let (query, page) = (Query::new(Method::AvgCos), PageOptions::default());
        let question = Question::new("earthquake in Lima", query);
        let made = made_of(&engine, &question, &candidates);
        let indexes = indexes(&made);
        assert_eq!((indexes[0], indexes.len()), (3, TEXTS.len() - 1));
        assert!(!indexes.contains(&1) && indexes.last() == Some(&4));
        let plain = page_of(&engine, &page);
        let score = |page: &Page, index: usize| {
            page.results().find(|result| result.index == index).unwrap().score
        };
        for index in [0, 2, 5, 6, 7] {
            assert_eq!(score(&made, index), score(&plain, index));
        }
        assert_eq!(score(&made, 3), score(&plain, 3).map(|score| score + 2.0));
    }
}
