//! One integration binary: each file tells one story about the built crate.

// Outside functions marked as tests the lint does not see that this is all test code.
#![allow(clippy::unwrap_used)]

mod allocation;
mod breaches;
mod connections;
mod connections_shared;
mod contract;
mod damage;
mod documents;
mod drain;
mod engine;
mod eval;
mod eval_calibrate;
mod eval_combination;
mod eval_shared;
mod exhaustion;
mod fasttext_bin;
mod fasttext_bin_shared;
mod files_written;
mod finalfusion;
mod fit;
mod fuzz_http;
mod fuzz_replay;
mod fuzz_seeds;
mod golden;
mod healthcheck;
mod http;
mod importer_memory;
mod importers_shared;
mod in_place_damage;
mod interrupted;
mod keys;
mod keys_over_http;
mod laws;
mod layers;
mod lexical;
mod linalg;
mod metrics_page;
#[cfg(feature = "model2vec")]
mod model2vec;
#[cfg(feature = "model2vec")]
mod model2vec_shared;
mod model_file;
mod numbers;
mod openapi;
mod oracle;
mod overflow;
mod pack;
mod pages;
mod pair_methods;
mod pair_methods_shared;
mod pairs_text;
mod pairs_tweets;
mod process_shared;
mod pruned_ranking;
mod questions;
mod ranker;
mod ranker_http;
mod reload;
mod replace;
mod settings;
mod settings_command;
mod shared_data;
mod side_by_side;
mod stream;
mod support;
mod trace;
#[cfg(feature = "train-ranker")]
mod train_ranker;
mod train_vectors;
mod train_weights;
mod transport;
mod watching;
mod weight;
mod widths;
mod word_table;
