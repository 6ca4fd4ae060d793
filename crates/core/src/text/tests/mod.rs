//! What the tokeniser promises: a table of examples (`table`), laws that hold for any text
//! (`laws`) and agreement with the rule of the default vectors (`agreement`).

mod agreement;
mod laws;
mod table;

use super::{Normalisation, Tokens, tokenise};

fn preset(name: &str) -> Normalisation {
    Normalisation::preset(name).expect("the tests name presets that exist")
}

fn texts(rules: &Normalisation, input: &str) -> Vec<String> {
    let mut tokens = Tokens::new();
    tokenise(rules, input, &mut tokens);
    tokens.texts().map(str::to_owned).collect()
}
