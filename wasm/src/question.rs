//! A question as JavaScript passes it: settings, and texts one after another.

use cognate::engine::least_score;
use cognate::{Engine, Query};
use serde::Deserialize;

use crate::error::Problem;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Asked {
    /// What the model is.
    About,
    /// What methods there are.
    Methods,
    /// The scores of pairs: a text and the next one.
    Pairs,
    /// The first text against all others.
    Rank,
    /// The vectors of texts.
    Embed,
    /// Why the first two texts score as they do.
    Explain,
    /// The event of each text of a stream, and what it is a duplicate of.
    Events,
}

/// Texts that candidates should be like and unlike, in place of a query.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LikesAsked {
    /// The weight of each liked text.
    pub weights: Vec<f32>,
    /// Number of disliked texts.
    pub disliked: usize,
    #[serde(default)]
    pub strategy: Option<String>,
    #[serde(default)]
    pub unlike_weight: Option<f32>,
}

/// Options of a ranking.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RankingAsked {
    pub likes: Option<LikesAsked>,
    pub top_k: Option<usize>,
    pub min_score: Option<f64>,
    pub collapse: Option<f64>,
    pub drop_opposed: bool,
}

/// Options of a stream; the times of its texts in milliseconds, or none.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct StreamAsked {
    pub times: Option<Vec<i64>>,
    pub preset: Option<String>,
    pub method: Option<String>,
    pub second: Option<String>,
    pub last: Option<usize>,
    pub within: Option<i64>,
    pub threshold: Option<f64>,
    /// Whether duplicates are looked for: they stay out of the window, so that each text is compared with
    /// those that stayed alone.
    pub only_new: bool,
}

/// Settings as JavaScript's side has checked and named them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    ask: Asked,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    measure: Option<String>,
    #[serde(default)]
    opposites: Option<String>,
    #[serde(default)]
    truncate: bool,
    /// Whether a text that cannot be scored is an error.
    #[serde(default)]
    refuse: bool,
    /// Whether one pair is asked about, whose texts are called so.
    #[serde(default)]
    one: bool,
    /// Whether to tell how the texts of each pair are opposed.
    #[serde(default)]
    opposes: bool,
    #[serde(default)]
    threshold: Option<f64>,
    #[serde(default)]
    normalize: bool,
    #[serde(default)]
    ranking: RankingAsked,
    #[serde(default)]
    stream: StreamAsked,
}

/// A question, resolved for a model.
#[derive(Debug)]
pub(crate) struct Question<'t> {
    pub asked: Asked,
    pub query: Query,
    pub one: bool,
    pub normalize: bool,
    pub ranking: RankingAsked,
    pub stream: StreamAsked,
    pub texts: Vec<&'t str>,
}

impl<'t> Question<'t> {
    /// Reads a question for a model; `auto` is the model's choice for what is asked.
    pub(crate) fn read(
        engine: &Engine,
        settings: &[u8],
        texts: &'t [u8],
        lengths: &[u8],
    ) -> Result<Self, Problem> {
        let settings: Settings = serde_json::from_slice(settings)
            .map_err(|error| Problem::Setting(format!("settings: {error}")))?;
        let name = settings.method.as_deref().unwrap_or("auto");
        let method = match settings.ask {
            Asked::Embed => engine.embedding_method(name)?,
            _ => engine.method(name)?,
        };
        let measure = settings.measure.as_deref().map(str::parse).transpose();
        let opposites = settings.opposites.as_deref().map(str::parse).transpose();
        let query = Query {
            measure: measure.map_err(Problem::unexpected("measure"))?,
            refuse_unscored: settings.refuse,
            truncate: settings.truncate,
            opposes: settings.opposes,
            threshold: settings.threshold.map(least_score),
            ..Query::new(method)
        };
        let opposites = opposites.map_err(Problem::unexpected("opposites"))?;
        let query = query.with_opposites(opposites);
        if !matches!(settings.ask, Asked::About | Asked::Methods | Asked::Events) {
            engine.check(&query)?;
        }
        let texts = std::str::from_utf8(texts)
            .map_err(|error| Problem::Setting(format!("texts: {error}")))?;
        Ok(Self {
            asked: settings.ask,
            query,
            one: settings.one,
            normalize: settings.normalize,
            ranking: settings.ranking,
            stream: settings.stream,
            texts: parted(texts, lengths),
        })
    }

    /// The text at a place, none where there are fewer.
    pub(crate) fn text(&self, at: usize) -> &'t str {
        self.texts.get(at).copied().unwrap_or_default()
    }
}

/// The texts of these lengths, counted in units of UTF-16, with one character after each.
fn parted<'t>(texts: &'t str, lengths: &[u8]) -> Vec<&'t str> {
    let lengths = lengths.as_chunks::<4>().0;
    let ascii = texts.is_ascii();
    let mut rest = texts;
    let mut part = |length: u32| {
        let end = if ascii { length as usize } else { bytes_of(rest, length) };
        let (text, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = after.get(1..).unwrap_or_default();
        text
    };
    lengths.iter().map(|length| part(u32::from_le_bytes(*length))).collect()
}

/// How many bytes so many units of UTF-16 take.
fn bytes_of(text: &str, units: u32) -> usize {
    let mut left = units as usize;
    let mut bytes = 0;
    for character in text.chars() {
        if left == 0 {
            break;
        }
        left = left.saturating_sub(character.len_utf16());
        bytes += character.len_utf8();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_parted_by_the_lengths_of_javascript() {
        for texts in [vec!["a", "", "b c"], vec!["é", "𝄞 地震", "", "x\ny"], vec![]] {
            let joined: String = texts.iter().flat_map(|text| [*text, "\n"]).collect();
            let length = |text: &&str| (text.encode_utf16().count() as u32).to_le_bytes();
            let lengths: Vec<u8> = texts.iter().flat_map(length).collect();
            assert_eq!(parted(&joined, &lengths), texts);
        }
    }
}
