//! What the words of a packed model say against how it was packed.

use cognate::model::Model;
use cognate::text::Normalisation;

/// Words that the vectors of a family list and others do not, with a word that they must lack.
struct Sign {
    preset: &'static str,
    listed: [&'static str; 2],
    lacking: Option<&'static str>,
}

/// The first that holds counts, so the most telling stand first.
const SIGNS: [Sign; 5] = [
    Sign { preset: "glove-twitter", listed: ["<user>", "<hashtag>"], lacking: None },
    Sign { preset: "bert", listed: ["[UNK]", "[CLS]"], lacking: None },
    Sign { preset: "word2vec-news", listed: ["##", "The"], lacking: None },
    Sign { preset: "glove-6b", listed: ["'s", "n't"], lacking: Some("The") },
    Sign { preset: "fasttext", listed: ["the", "The"], lacking: None },
];

/// What to look at before the model is used, a sentence each. Rules other than the default are taken
/// as chosen with care.
pub fn hints(model: &Model) -> Vec<String> {
    let listed = |word: &str| model.vocabulary().lookup(word).is_some();
    let mut hints = Vec::new();
    if Normalisation::preset("plain").as_ref() == Some(model.normalisation()) {
        let found = SIGNS
            .iter()
            .find(|sign| sign.listed.into_iter().all(listed) && !sign.lacking.is_some_and(listed));
        if let Some(Sign { preset, listed: [one, other], .. }) = found {
            hints.push(format!(
                "the words `{one}` and `{other}` suggest --normalisation {preset}; the default, \
                 plain, cuts texts otherwise and does not find such words"
            ));
        }
    }
    if model.vectors().dims() == 1 {
        hints.push(
            "one number a word is no vector; a table of counts goes with --counts".to_owned(),
        );
    }
    hints
}
