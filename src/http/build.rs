//! How this program was built.

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, if the build set the variable of this name, as `.ci/release` does.
pub const REVISION: &str = match option_env!("COGNATE_REVISION") {
    Some(revision) => revision,
    None => "unknown",
};

pub fn features() -> String {
    let features = [
        (cfg!(feature = "columns"), "columns"),
        (cfg!(feature = "embed-model"), "embed-model"),
        (cfg!(feature = "eval"), "eval"),
        (cfg!(feature = "model2vec"), "model2vec"),
        (cfg!(feature = "otlp"), "otlp"),
        (cfg!(feature = "postgres"), "postgres"),
        (cfg!(feature = "swagger"), "swagger"),
        (cfg!(feature = "train"), "train"),
        (cfg!(feature = "train-ranker"), "train-ranker"),
    ];
    let built: Vec<&str> =
        features.iter().filter(|(is_in, _)| *is_in).map(|(_, name)| *name).collect();
    if built.is_empty() { "none".to_owned() } else { built.join(",") }
}
