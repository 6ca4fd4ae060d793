//! `&str` to tokens: one forward pass made for very short, noisy text (tweets, headlines), the
//! same for packing, training and serving. It knows characters, not words: no vocabulary, no
//! language, no file.
//!
//! The order is fixed: entities, NFKC (by segment, so that every token keeps its place in the
//! input), cutting, then case and accents of each token. Words of plain ASCII skip the first two and are
//! cut where they lie; what stands between two spaces and holds other characters is first copied clean
//! (`clean`). All work is linear in the bytes of the input, whatever they are.
//!
//! Texts that are already tokens, joined by spaces, give the same tokens again.

mod bylines;
mod classes;
mod clean;
mod contractions;
mod cues;
mod entities;
mod initials;
mod length;
mod normalisation;
mod plain;
mod scan;
mod spelling;
#[cfg(test)]
mod tests;
mod tokens;
mod web;
mod window;

#[cfg(unix)]
pub use entities::NAMED as NAMED_ENTITIES;
pub use length::about;
pub use normalisation::{
    Accents, Bylines, Case, Cjk, Contractions, Controls, Cues, Elongations, Emoji, Entities,
    Hashtags, Initials, Mentions, Normalisation, Numbers, Punctuation, TOKENISER, Urls,
};
pub use spelling::shortened;
pub use tokens::{Kind, Token, Tokens};
#[cfg(unix)]
pub use web::SHORTENERS;
use window::Plain;

/// Text beyond this many bytes is not read. Callers bound texts far below it; it only makes sure
/// that every position, also of the longest output, fits into 32 bits.
const INPUT_BYTES: usize = 1 << 28;

/// Replaces `tokens` by those of `input`.
///
/// The texts of all tokens but tags are together at most four times as long as the input.
///
/// ```
/// use cognate::text::{Normalisation, Tokens, tokenise};
///
/// let rules = Normalisation::preset("plain").expect("it is a preset");
/// let mut tokens = Tokens::new();
/// tokenise(&rules, "Don’t miss #NewYork2020 http://t.co/x", &mut tokens);
/// assert_eq!(tokens.texts().collect::<Vec<_>>(), ["don't", "miss", "new", "york", "2020"]);
/// ```
pub fn tokenise(rules: &Normalisation, input: &str, tokens: &mut Tokens) {
    let mut end = input.len().min(INPUT_BYTES);
    while !input.is_char_boundary(end) {
        end -= 1;
    }
    let part = bylines::headline(rules, &input[..end]);
    let input = &input[..part.end];
    let plain = Plain::from_rules(rules);
    tokens.begin(input, rules.case == Case::Lower);
    if rules.writes_tags() {
        plain::scan_part(rules, &plain, input, part, tokens);
    } else {
        plain::cut(rules, &plain, input, part.start, tokens);
    }
    tokens.end(input.len());
}
