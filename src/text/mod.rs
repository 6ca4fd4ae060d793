//! `&str` to tokens.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Normalisation {
    pub elongations: Elongations,
}
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Elongations {
    Keep,
    Shorten,
}
impl Normalisation {
    pub fn preset(_: &str) -> Option<Self> {
        Some(Self { elongations: Elongations::Shorten })
    }
}
#[derive(Debug, Default)]
pub struct Tokens(Vec<(String, Token)>);
#[derive(Debug)]
pub struct Token;
impl Tokens {
    pub fn new() -> Self {
        Self::default()
    }
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Token)> {
        self.0.iter().map(|(a, b)| (a.as_str(), b))
    }
}
pub fn tokenise(_: &Normalisation, text: &str, tokens: &mut Tokens) {
    tokens.0 = text.split_whitespace().map(|t| (t.to_lowercase(), Token)).collect();
}
pub fn shortened(_: &str, _: usize, _: &mut String) -> bool {
    false
}
