//! Foreign vectors and counts made into model files, and models extended.

mod command;
mod fasttext_bin;
mod fasttext_bin_data;
mod fasttext_quantised;
mod finalfusion;
mod importer_memory;
mod importers_data;
mod interrupted;
#[cfg(feature = "model2vec")]
mod model2vec;
#[cfg(feature = "model2vec")]
mod model2vec_data;
mod pieces;
#[cfg(feature = "model2vec")]
mod unigram;
