//! Why two texts got their score: their words, the cosines between them, and the share of each.

use cognate_kernels::vector;

use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Opposition, Place, Query, QueryError, finite, scorable};
use crate::methods::ranker::Attention;
use crate::methods::{Info, Reads, Scorer, Shares};
use crate::model::Phrase;
use crate::model::phrase::{Found, Origin, Word};

/// A word that has a vector.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExplainedWord {
    /// The token that was looked up.
    pub token: String,
    /// Bytes of the text that the token comes from: first and end.
    pub span: [u32; 2],
    /// The vocabulary's word; `null` where the vector was made for this text.
    pub word: Option<String>,
    /// How the word was found.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub found: Found,
    /// The pieces that its vector was made from, in their order; `##` begins one within the word.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pieces: Vec<String>,
    /// The word's idf, if the model has idf.
    pub idf: Option<f32>,
    /// The length of the word's vector.
    pub norm: f32,
    /// The word's share of the score, if the score divides into words.
    pub share: Option<f32>,
}

/// A token that no word was found for.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnknownToken {
    /// The token that was looked up.
    pub token: String,
    /// The token's share of the score, for methods that read tokens.
    pub share: Option<f32>,
}

/// Why two texts got their score. The shares of words and unknown tokens add up to the score.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The score, as `similarity` gives it.
    pub score: f32,
    /// Whether a text has nothing to be scored by.
    pub unscored: bool,
    /// Whether either text was cut short.
    pub truncated: [bool; 2],
    /// The share of listed words of either text.
    pub known: [f32; 2],
    /// Words of the first text that have a vector.
    pub one: Vec<ExplainedWord>,
    /// Words of the second text that have a vector.
    pub other: Vec<ExplainedWord>,
    /// Tokens of the first text without a known word.
    pub one_unknown: Vec<UnknownToken>,
    /// Tokens of the other.
    pub other_unknown: Vec<UnknownToken>,
    /// Cosines of the words' vectors: a row a word of the first text.
    pub cosines: Vec<Vec<f32>>,
    /// The shares that add up to the score, if the score divides into words.
    pub shares: Option<Shares>,
    /// For each word of the one text, the words of the other that it attends to, for methods that
    /// read one text by the words of the other.
    pub attention: Option<Vec<Attention>>,
    /// How the texts are opposed, if the model knows opposites; by words of the explanation.
    pub opposes: Vec<Opposition>,
}

/// # Explain
impl Engine {
    /// Explains the score of one pair; for a ranker `a` is the query and `b` the candidate.
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    /// # let engine = cognate::Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    /// let query = cognate::Query::new(engine.method("avg-cos")?);
    /// let explained = engine.explain("quake hits city", "earthquake", &query)?;
    /// let words = explained.one.iter().chain(&explained.other);
    /// let shares: f32 = words.filter_map(|word| word.share).sum();
    /// assert!((shares - explained.score).abs() < 1e-5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self, a: &str, b: &str, query: &Query) -> Result<Explanation, QueryError> {
        self.explain_by((self.scorer_of(query)?, query.method.info()), (a, b), query)
    }

    /// [`Engine::explain`] by a scorer that need not be one of the methods.
    pub(super) fn explain_by(
        &self,
        (scorer, info): (&Scorer, &Info),
        (a, b): (&str, &str),
        query: &Query,
    ) -> Result<Explanation, QueryError> {
        if let Scorer::RankList(_) = scorer {
            return Err(QueryError::OnlyRanks { method: info.name });
        }
        let measure = self.measure(scorer, info, query)?;
        let [mut one, mut other] = [Phrase::new(&self.model), Phrase::new(&self.model)];
        let truncated = [
            self.read(&mut one, a, query, Place::Pair(0, 0))?,
            self.read(&mut other, b, query, Place::Pair(0, 1))?,
        ];
        let known = scorable(&one, info) && scorable(&other, info);
        let (mut score, mut shares, mut attention) = ([0.0], None, None);
        if known {
            let mut workspace = Workspace::with_memory(&self.model);
            let scratch = workspace.scratch();
            let mut against = scorer.against(measure, &one, scratch);
            against.score(std::slice::from_ref(&other), &mut score, scratch);
            finite(score[0], info)?;
            shares = against.shares(&other, scratch);
            if let Some(shares) = &mut shares
                && one.same_bag(&other)
            {
                share_alike(shares, score[0]);
            }
            attention = against.attention(&other, scratch);
            against.give_back(scratch);
        } else {
            query.accepts_unknown(Place::Pair(0, usize::from(scorable(&one, info))))?;
        }
        let cosines = one.words().iter().map(|word| {
            let row = one.row(*word);
            other.words().iter().map(|word| vector::cosine(row, other.row(*word))).collect()
        });
        let [of_one, of_other] = match &shares {
            Some(shares) => [Some(shares.one.as_slice()), Some(shares.other.as_slice())],
            None => [None, None],
        };
        let explanation = Explanation {
            score: score[0],
            unscored: !known,
            truncated,
            known: [one.known_share(), other.known_share()],
            cosines: cosines.collect(),
            one: words(&one, info.reads, of_one),
            other: words(&other, info.reads, of_other),
            one_unknown: unknown(&one, info.reads, of_one),
            other_unknown: unknown(&other, info.reads, of_other),
            shares,
            attention,
            opposes: self.told([&one, &other], query),
        };
        match explanation.is_finite() {
            true => Ok(explanation),
            false => Err(QueryError::NonFinite { method: info.name }),
        }
    }
}

/// Texts of the same words score 1 by rule, even where their words' vectors cancel out or have no
/// length. The difference to the sum of shares is then divided among all words.
fn share_alike(shares: &mut Shares, score: f32) {
    const ROUNDING: f32 = 1e-4;
    let lacking = score - shares.one.iter().chain(&shares.other).sum::<f32>();
    let words = shares.one.len() + shares.other.len();
    if lacking.abs() > ROUNDING && words > 0 {
        let each = lacking / words as f32;
        shares.one.iter_mut().chain(&mut shares.other).for_each(|share| *share += each);
    }
}

impl Explanation {
    /// Whether all numbers can be written as JSON, which has neither infinity nor NaN.
    fn is_finite(&self) -> bool {
        let memberships = self.shares.iter().filter_map(|shares| shares.memberships.as_ref());
        let attended = self.attention.iter().flatten().flat_map(|of_word| &of_word.to);
        let words = self.one.iter().chain(&self.other);
        let unknown = self.one_unknown.iter().chain(&self.other_unknown);
        let mut numbers = std::iter::once(self.score)
            .chain(self.cosines.iter().flatten().copied())
            .chain(words.flat_map(|word| [word.idf, Some(word.norm), word.share]).flatten())
            .chain(unknown.filter_map(|token| token.share))
            .chain(memberships.flat_map(|of| of.one.iter().chain(&of.other).flatten().copied()))
            .chain(attended.flat_map(|word| [Some(word.weight), word.cosine]).flatten());
        numbers.all(f32::is_finite)
    }
}

fn words(phrase: &Phrase<'_>, reads: Reads, shares: Option<&[f32]>) -> Vec<ExplainedWord> {
    let vocabulary = phrase.model().vocabulary();
    let share = |place: usize, token: u32| match reads {
        Reads::Words => shares?.get(place).copied(),
        // The share of a token is divided among the words that it became.
        Reads::Tokens => {
            let parts = phrase.origins().filter(|part| part.token == token).count();
            shares?.get(token as usize).map(|share| share / parts as f32)
        }
    };
    let explain = |(place, (origin, &word)): (usize, (Origin, &Word))| {
        let (token, at) = phrase.tokens().iter().nth(origin.token as usize)?;
        Some(ExplainedWord {
            token: token.to_owned(),
            span: [at.span.start, at.span.end],
            word: phrase.id(word).map(|id| vocabulary.word(id).to_owned()),
            found: origin.found,
            pieces: phrase.pieces(origin).into_iter().map(str::to_owned).collect(),
            idf: phrase.idf(word),
            norm: vector::norm(phrase.row(word)),
            share: share(place, origin.token),
        })
    };
    phrase.origins().zip(phrase.words()).enumerate().filter_map(explain).collect()
}

fn unknown(phrase: &Phrase<'_>, reads: Reads, shares: Option<&[f32]>) -> Vec<UnknownToken> {
    let shares = shares.filter(|_| reads == Reads::Tokens);
    let explain = |&token: &u32| UnknownToken {
        token: phrase.tokens().text(token as usize).to_owned(),
        share: shares.and_then(|shares| shares.get(token as usize).copied()),
    };
    phrase.unknown().iter().map(explain).collect()
}
