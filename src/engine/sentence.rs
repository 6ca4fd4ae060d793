//! The summary of an explanation, in a sentence or two.

use crate::engine::Explanation;
use crate::methods::ranker::Attention;

/// Words of a query that the summary names.
const MOST_NAMED: usize = 3;

impl Explanation {
    /// The explanation of a score by `method`, in a sentence or two.
    pub fn sentence(&self, method: &str) -> String {
        of(method, self)
    }
}

fn of(method: &str, explained: &Explanation) -> String {
    let unknown = explained.one_unknown.len() + explained.other_unknown.len();
    let ignored = match unknown {
        0 => String::new(),
        1 => " One token has no vector.".to_owned(),
        more => format!(" {more} tokens have no vector."),
    };
    if explained.unscored {
        return format!(
            "{method} cannot score these texts: one of them has no known word.{ignored}"
        );
    }
    let score = explained.score;
    if let Some(words) = &explained.attention {
        let seen = |word: &Attention| seen(explained, word);
        let read = words.iter().filter_map(seen).take(MOST_NAMED).collect::<String>();
        return format!(
            "{method} gives the post a chance of {:.2}, a score of {score:.2}.{read}{ignored}",
            score.exp()
        );
    }
    let words = || explained.one.iter().chain(&explained.other);
    let mut shares: Vec<(f32, &str)> =
        words().filter_map(|word| Some((word.share?, word.token.as_str()))).collect();
    shares.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most: Vec<String> = shares
        .iter()
        .filter(|(share, _)| *share > 0.0)
        .take(3)
        .map(|(share, token)| format!("\"{token}\" ({share:.2})"))
        .collect();
    let closest = closest(explained).map_or(String::new(), |(one, other, cosine)| {
        format!(" The closest words are \"{one}\" and \"{other}\", at a cosine of {cosine:.2}.")
    });
    match most.as_slice() {
        [] => format!("{method} scores {score:.2}.{closest}{ignored}"),
        most => {
            format!(
                "{method} scores {score:.2}; most comes from {}.{closest}{ignored}",
                most.join(", ")
            )
        }
    }
}

/// What a word of the query was read from most.
fn seen(explained: &Explanation, query: &Attention) -> Option<String> {
    let most = query.to.first().filter(|word| word.weight > 0.0)?;
    let weight = most.weight;
    let query = &explained.one.get(query.word)?.token;
    let post = &explained.other.get(most.word)?.token;
    let cosine =
        most.cosine.map_or(String::new(), |cosine| format!(", at a cosine of {cosine:.2}"));
    Some(format!(" \"{query}\" was read from \"{post}\" most ({weight:.2}{cosine})."))
}

/// The two words, one of each text, whose vectors point most the same way.
fn closest(explained: &Explanation) -> Option<(&str, &str, f32)> {
    let cells = explained.cosines.iter().zip(&explained.one).flat_map(|(row, one)| {
        row.iter()
            .zip(&explained.other)
            .map(move |(&cosine, other)| (one.token.as_str(), other.token.as_str(), cosine))
    });
    cells.reduce(|best, cell| if cell.2 > best.2 { cell } else { best })
}
