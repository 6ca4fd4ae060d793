//! What a model does and an exported folder does not, in words for the person who exports it and for
//! those who get the folder.

use cognate::model::unknown::Fallback;
use cognate::model::{Frequency, Model, Unknown};

use crate::export::rules::Rules;
use crate::export::{ExportOptions, Inflections, Library};

/// Sections that no method reads: they say how texts are looked up.
const NO_METHODS: [&str; 2] = ["pieces", "subword"];

/// Everything that stays behind, most important first.
pub(super) fn list(model: &Model, options: &ExportOptions, rules: &Rules) -> Vec<String> {
    let mut list = Vec::new();
    methods(model, &mut list);
    unlisted(model, options, &mut list);
    list.extend(rules.left_behind.iter().map(|what| (*what).to_owned()));
    if options.library == Library::SentenceTransformers {
        list.push(
            "a text's unknown words count in its mean, as vectors of zeros: its direction stays, its \
             length shrinks"
                .to_owned(),
        );
    }
    list
}

fn methods(model: &Model, list: &mut Vec<String>) {
    match model.metadata().get("auto_method").filter(|name| *name != "avg-cos") {
        Some(name) => list.push(format!(
            "every method but `avg-cos`, also `{name}`, which `auto` stands for: a folder of this \
             kind knows the mean alone"
        )),
        None => list.push("every method but `avg-cos`".to_owned()),
    }
    if model.frequency() == Frequency::None && model.vocabulary().idf.is_some() {
        list.push("the counts and idf of words: in the mean every word weighs the same".to_owned());
    }
    let sections: Vec<_> =
        model.sections().into_iter().filter(|name| !NO_METHODS.contains(name)).collect();
    if !sections.is_empty() {
        list.push(format!("the sections {}", sections.join(", ")));
    }
}

fn unlisted(model: &Model, options: &ExportOptions, list: &mut Vec<String>) {
    match model.unknown() {
        Unknown::Skip => {}
        Unknown::Subword => list.push(
            "words that are not listed are unknown; the model makes their vectors from parts of them"
                .to_owned(),
        ),
        Unknown::Fallback(rules) => fallback(rules, options, list),
    }
}

fn fallback(rules: &Fallback, options: &ExportOptions, list: &mut Vec<String>) {
    if options.inflections == Inflections::None && !rules.suffixes.is_empty() {
        list.push(
            "inflected forms that are not listed (`quakes` where only `quake` is) are unknown; \
             --inflections all makes entries of them"
                .to_owned(),
        );
    }
    if rules.parts {
        list.push(
            "words with an apostrophe that are not listed are unknown; the model takes their parts"
                .to_owned(),
        );
    }
    if rules.piece_norm.is_some() {
        list.push(
            "other words that are not listed are unknown; the model makes their vectors from pieces \
             of them"
                .to_owned(),
        );
    }
    if rules.hash_norm.is_some() {
        list.push(
            "numbers and names that are not listed are unknown; the model gives each a vector made \
             from its hash"
                .to_owned(),
        );
    }
}
