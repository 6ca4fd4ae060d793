//! A ranking in progress: weighed before it begins, and computed in parts over the free threads.

use cognate::engine::rank::{Asked, Pages, Question};
use cognate::engine::{Candidates, PageOptions, Place};

use crate::http::api::cost::Cost;
use crate::http::api::explain::explaining;
use crate::http::api::pipeline::{ANSWER_HEAD, INDEX_BYTES, NUMBER_BYTES};
use crate::http::app::App;
use crate::http::error::{ApiError, Pointer, Result, Segment};
use crate::http::request::query::{Resolved, reading};
use crate::http::work::pool::JobContext;

/// Bytes of a result besides its numbers: `{"index":,"score":},`.
const RESULT_BYTES: usize = 20;
/// Bytes of `"known":,` and a share.
const SHARE_BYTES: usize = 9 + NUMBER_BYTES;
/// Bytes of `"opposes":[],` and the names of two kinds: hardly any text has more.
const OPPOSES_BYTES: usize = 13 + 22;
/// Bytes of `"related":false,`.
const RELATED_BYTES: usize = 16;
const WORD_BYTES: usize = 60;
/// Fewest candidates that are compared with several texts at once.
const MIN_PART: usize = 64;
/// Stored vectors in a part: some hundred microseconds for each text of the query.
const KEPT_PART: usize = 4096;
/// Parts of a list for each thread.
const PARTS_PER_THREAD: usize = 2;

/// Weighs the ranking of candidates, of which a result has so many bytes besides its numbers; by
/// their stored vectors, if there are any.
pub(crate) fn weigh<T: AsRef<str>>(
    question: &Question<'_>,
    candidates: &Candidates<'_, T>,
    resolved: &Resolved,
    (bytes_of, by_vectors): (impl Fn(&T) -> usize, bool),
    app: &App,
) -> Result<Cost> {
    let (ranked, page) = (candidates.ranked().len(), &question.page);
    let texts = candidates.ranked().iter().map(|candidate| (*candidate).as_ref());
    let asked = question.asked.texts().map(|(_, text)| text);
    let count = asked.clone().count().max(1);
    // Texts are read only to be compared with each other.
    let by_boosts =
        question.asked.is_nothing() && page.collapse.is_none() && page.diversify.is_none();
    let read = asked.clone().chain(texts.clone().filter(|_| !by_boosts));
    let bytes = read.map(str::len).sum::<usize>();
    let only_best = page.needed().is_some() || question.min_score.is_some();
    let work = if by_vectors || by_boosts {
        // Only the texts of the query are read, if there are any.
        let dims = resolved.model.engine.model().dims() as u64;
        [dims.saturating_mul((ranked * count) as u64); 2]
    } else {
        resolved.multiplications_of_ranking(asked, texts, only_best)
    };
    let more = comparing(question, ranked, work[1]);
    // To find opposed candidates, texts are read again.
    let query = &question.query;
    let looks = page.drop_opposed || query.opposes || query.threshold.is_some();
    let again = if looks { reading(bytes) } else { 0 };
    let most = work[1].saturating_add(more[1]).saturating_add(again);
    let work = [work[0].saturating_add(more[0]), most];
    let explained = explaining_results(question, candidates.all(), resolved);
    let items = candidates.all().len().saturating_mul(count);
    let cost = Cost::new(resolved, items, bytes, work, app)?;
    let cost = if explained > 0 { cost.heavier(explained, app)? } else { cost };
    cost.answering(answer_bytes(question, candidates.all(), bytes_of), "/candidates", app)
}

fn rankings(question: &Question<'_>) -> usize {
    question.asked.queries().len().max(1)
}

/// Approximate bytes of the answer: texts and ids as they are, without escapes. The best candidates
/// are not known yet, so if not all are returned, the longest count.
fn answer_bytes<T>(question: &Question<'_>, all: &[T], bytes_of: impl Fn(&T) -> usize) -> usize {
    let (page, query) = (&question.page, &question.query);
    // Duplicates are listed with the results.
    let most = page.top_k.filter(|_| page.collapse.is_none());
    let wanted = most.map_or(all.len(), |most| most.min(all.len()));
    let bytes = all.iter().map(bytes_of);
    let (all, longest) =
        bytes.fold((0, 0), |(all, longest), bytes| (all + bytes, bytes.max(longest)));
    let share = if query.coverage { SHARE_BYTES } else { 0 };
    let alike = if page.collapse.is_some() { SHARE_BYTES } else { 0 };
    let opposes = if query.opposes { OPPOSES_BYTES } else { 0 };
    let related = query.threshold.map_or(0, |_| RELATED_BYTES);
    let each = RESULT_BYTES + NUMBER_BYTES + INDEX_BYTES + share + alike + opposes + related;
    let explained = if page.explain { wanted.min(PageOptions::MAX_EXPLAINED) } else { 0 };
    let ranking = ANSWER_HEAD
        .saturating_add(wanted.saturating_mul(each))
        .saturating_add(longest.saturating_mul(wanted).min(all))
        .saturating_add(explained * PageOptions::WORDS * WORD_BYTES);
    ranking.saturating_mul(rankings(question))
}

/// Multiplications for comparing candidates with each other, at least and at most, if comparing
/// them with the query takes `asked`.
fn comparing(question: &Question<'_>, candidates: usize, asked: u64) -> [u64; 2] {
    let (texts, all) = (question.asked.texts().count().max(1) as u64, candidates as u64);
    let each = asked / texts.saturating_mul(all).max(1);
    let page = &question.page;
    let wanted = page.end().map_or(all, |wanted| (wanted as u64).min(all));
    let pool = (page.pool() as u64).min(all);
    let diversified = pool.saturating_mul(wanted.min(pool)) / 2;
    let (least, most) = match page.collapse {
        // Each candidate up to the last result is compared with all results before it.
        Some(_) => (wanted.max(pool), all.saturating_mul(wanted.max(pool))),
        None => (0, 0),
    };
    let rankings = rankings(question) as u64;
    [least, most].map(|collapsed| {
        collapsed.saturating_add(diversified).saturating_mul(each).saturating_mul(rankings)
    })
}

/// Multiplications for explaining the first results.
fn explaining_results<T: AsRef<str>>(
    question: &Question<'_>,
    candidates: &[T],
    resolved: &Resolved,
) -> u64 {
    if !question.page.explain {
        return 0;
    }
    let longest = |texts: &mut dyn Iterator<Item = &str>| {
        texts.max_by_key(|text| text.len()).unwrap_or_default().to_owned()
    };
    let asked = longest(&mut question.asked.texts().map(|(_, text)| text));
    let candidate = longest(&mut candidates.iter().map(AsRef::as_ref));
    let most = PageOptions::MAX_EXPLAINED;
    let wanted = question.page.top_k.map_or(most, |wanted| wanted.min(most));
    let likes = question.asked.likes().map_or(1, |likes| likes.liked.len() as u64);
    explaining(&asked, &candidate, resolved)
        .saturating_mul(wanted as u64)
        .saturating_mul((rankings(question) as u64).saturating_mul(likes))
}

/// Ranks the candidates and makes the requested pages. All texts together may have so many tokens.
pub(crate) fn compute<T: AsRef<str> + Sync>(
    question: &Question<'_>,
    candidates: &Candidates<'_, T>,
    (resolved, cost, most_tokens): (&Resolved, &Cost, usize),
    app: &App,
    work: &JobContext,
) -> Result<Pages> {
    let length = candidates.ranked().len();
    let engine = &resolved.model.engine;
    let are_read = !candidates.have_vectors() && !question.asked.is_nothing();
    let texts = candidates.ranked().iter().enumerate().filter(|_| are_read);
    let texts = texts.map(|(index, candidate)| {
        (Place::Candidate(candidates.place(index)), (*candidate).as_ref())
    });
    let places = question.asked.texts().chain(texts);
    let reads = resolved.methods().next().is_some();
    if reads {
        resolved.check_total(places.clone(), most_tokens, || work.check())?;
    }
    let per_part = match &question.asked {
        _ if !are_read => KEPT_PART,
        _ if !question.is_in_parts(engine) => length,
        Asked::One(_) => cost.per_part(),
        // Enough that preparing the texts takes little, few enough that every thread gets some.
        Asked::Each(_) | Asked::Likes(_) | Asked::Nothing => {
            length.div_ceil(PARTS_PER_THREAD * app.compute.threads()).max(MIN_PART)
        }
    };
    let ranked = work.in_parts_by(length, per_part, |parts| {
        engine.rank_session(question, candidates, |session| {
            parts.each(|part| session.run(part, || work.check().is_ok()));
        })
    });
    let ranked = ranked.map_err(|error| resolved.explain(restored(candidates, error), places))?;
    Resolved::check_read(ranked.counts().tokens as usize, most_tokens)?;
    engine.pages(question, candidates, ranked, || work.check())
}

/// Sets a candidate's error to its position in the request.
fn restored<T>(candidates: &Candidates<'_, T>, error: ApiError) -> ApiError {
    error.renamed(|pointer| match *pointer.segments() {
        [Segment::Field("candidates"), Segment::Index(index)] => {
            Pointer::from("/candidates").index(candidates.place(index))
        }
        _ => pointer,
    })
}
