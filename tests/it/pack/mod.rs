//! Foreign vectors and counts made into model files, and models extended.

mod command;
mod fasttext_quantised;
mod interrupted;
#[cfg(feature = "model2vec")]
mod model2vec_data;
mod pieces;
#[cfg(feature = "model2vec")]
mod unigram;
