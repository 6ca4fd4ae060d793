//! The summary of an explanation, in a sentence or two.

use crate::engine::{Explanation, Opposition};
use crate::methods::ranker::Attention;
use crate::model::phrase::Found;

/// Words of a query that the summary names.
const MAX_NAMED: usize = 3;

impl Explanation {
    /// The explanation of a score by `method`, in a sentence or two.
    pub fn sentence(&self, method: &str) -> String {
        of(method, self)
    }
}

fn of(method: &str, explained: &Explanation) -> String {
    let ignored = told_of_unknown(explained);
    if explained.unscored {
        return format!(
            "{method} cannot score these texts: one of them has no known word.{ignored}"
        );
    }
    let score = explained.score;
    let opposed = told_of_opposites(explained);
    if let Some(words) = &explained.attention {
        let seen = |word: &Attention| seen(explained, word);
        let read = words.iter().filter_map(seen).take(MAX_NAMED).collect::<String>();
        return format!(
            "{method} gives the post a chance of {:.2}, a score of {score:.2}.{read}{opposed}{ignored}",
            score.exp()
        );
    }
    let most: Vec<String> = shares_of_tokens(explained)
        .iter()
        .filter(|(_, share)| *share > 0.0)
        .take(MAX_NAMED)
        .map(|(token, share)| format!("\"{token}\" ({share:.2})"))
        .collect();
    let closest = closest(explained).map_or(String::new(), |(one, other, cosine)| {
        format!(" The closest words are \"{one}\" and \"{other}\", at a cosine of {cosine:.2}.")
    });
    match most.as_slice() {
        [] => format!("{method} scores {score:.2}.{closest}{opposed}{ignored}"),
        most => {
            format!(
                "{method} scores {score:.2}; most comes from {}.{closest}{opposed}{ignored}",
                most.join(", ")
            )
        }
    }
}

fn told_of_opposites(explained: &Explanation) -> String {
    let kind = |Opposition { kind, words }: &Opposition| {
        let words = words.iter().flatten().map(|word| format!("\"{}\"", word.token));
        format!("{} ({})", kind.name(), words.collect::<Vec<_>>().join(", "))
    };
    match explained.opposes.iter().map(kind).collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        kinds => format!(" The texts are opposed by {}.", kinds.join(" and ")),
    }
}

/// The words of the other text that a word of the query attends to most.
fn seen(explained: &Explanation, query: &Attention) -> Option<String> {
    let most = query.to.first().filter(|word| word.weight > 0.0)?;
    let weight = most.weight;
    let query = &explained.one.get(query.word)?.token;
    let post = &explained.other.get(most.word)?.token;
    let cosine =
        most.cosine.map_or(String::new(), |cosine| format!(", at a cosine of {cosine:.2}"));
    Some(format!(" \"{query}\" was read from \"{post}\" most ({weight:.2}{cosine})."))
}

/// The share of each token in the score, both texts together, the largest first.
fn shares_of_tokens(explained: &Explanation) -> Vec<(&str, f32)> {
    let words = explained.one.iter().chain(&explained.other);
    let mut shares: Vec<(&str, f32)> =
        words.filter_map(|word| Some((word.token.as_str(), word.share?))).collect();
    shares.sort_by(|a, b| a.0.cmp(b.0));
    shares.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0.0 };
        same
    });
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
}

/// The tokens that have little or no share, if there are any.
fn told_of_unknown(explained: &Explanation) -> String {
    let without = explained.one_unknown.len() + explained.other_unknown.len();
    let mut told = match without {
        0 => String::new(),
        1 => " One token has no vector.".to_owned(),
        more => format!(" {more} tokens have no vector."),
    };
    let words = || explained.one.iter().chain(&explained.other);
    let made = |found: Found| matches!(found, Found::NGrams | Found::Pieces | Found::Hash);
    let unknown = without + words().filter(|word| made(word.found)).count();
    let all = without + words().count();
    if 2 * unknown > all {
        told.push_str(&format!(
            " The model does not know {unknown} of {all} words, so the score says little."
        ));
    }
    let tokens = explained.one_unknown.iter().chain(&explained.other_unknown);
    let of_words = words().filter(|word| made(word.found)).map(|word| word.token.as_str());
    if tokens.map(|token| token.token.as_str()).chain(of_words).any(without_spaces) {
        told.push_str(" The model does not cover text written without spaces between words.");
    }
    told
}

/// Whether a token is of a script that is written without spaces: Chinese, Japanese, Thai and their
/// neighbours. A run of it is one token, which no model of words lists.
fn without_spaces(token: &str) -> bool {
    let of_script = |c: char| {
        matches!(c,
            '\u{0E00}'..='\u{0EFF}' // Thai and Lao
            | '\u{1000}'..='\u{109F}' // Burmese
            | '\u{1780}'..='\u{17FF}' // Khmer
            | '\u{3040}'..='\u{30FF}' // kana
            | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' // Han
            | '\u{20000}'..='\u{3FFFF}')
    };
    token.chars().any(of_script)
}

/// The two most similar words, one of each text, not the same and neither with a stand-in for its
/// vector.
fn closest(explained: &Explanation) -> Option<(&str, &str, f32)> {
    let cells = explained.cosines.iter().zip(&explained.one).flat_map(|(row, one)| {
        row.iter().zip(&explained.other).map(move |(&cosine, other)| (one, other, cosine))
    });
    // A stand-in resembles other words by chance alone.
    let cells = cells.filter(|(one, other, _)| {
        one.token != other.token && one.found != Found::Hash && other.found != Found::Hash
    });
    cells
        .reduce(|best, cell| if cell.2 > best.2 { cell } else { best })
        .map(|(one, other, cosine)| (one.token.as_str(), other.token.as_str(), cosine))
}
