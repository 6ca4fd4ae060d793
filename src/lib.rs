//! cognate says how alike very short texts are (tweets, headlines, titles, queries), in
//! microseconds on a CPU, from word vectors and idf tables that it memory-maps.
//!
//! This crate is the service's library; the binary `cognate` is a thin command line over it.
//! The house, bottom first; a room may use only rooms above it in this table:
//!
//! | room | what it knows |
//! |---|---|
//! | [`text`] | `&str` to tokens: Unicode, case, splitting, the same for packing, training, serving |
//! | [`kernels`] | products of rows, principal axes, optimal transport: numbers, no words, no files |
//! | [`files`] | files of others read from front to back: unpacked, counted, with a bar |
//! | [`page`] | one HTML page without scripts, and the frame of a plot |
//! | [`metrics`] | the measures of evaluation and their significance tests |
//! | [`model`] | the model file: format, mapping, vocabulary, vectors, a text looked up, the writer |
//! | [`methods`] | every way of saying how alike two texts are, by name |
//! | [`engine`] | one model, every method, and the questions that can be asked of them |
//! | [`pack`] | foreign vectors and counts become a model file |
//! | [`train`] | what methods learn from texts, and how a run goes on after a crash |
//! | [`inspect`] | what is inside a model file |
//! | [`pairs`] | labelled couples of texts, made from text that nobody labelled |
//! | [`eval`] | methods measured on labelled texts: tables, reports, thresholds |
//! | [`http`] | the service: routes, limits, admission, reload; the only room with tokio, axum, tower |
//! | [`cli`] | flags turned into the options of each subcommand |
//!
//! `pack`, `train`, `inspect`, `pairs`, `eval` and `http` stand beside each other and do not use one
//! another. A test reads the imports of every file and holds them to this order.
//!
//! ```no_run
//! use cognate::model::{Model, OpenOptions};
//! use std::path::Path;
//!
//! let model = Model::open(Path::new("models/default.safetensors"), &OpenOptions::default())?;
//! let phrase = model.phrase("Quake hits L.A.!!");
//! println!("{} words, {} tokens unknown", phrase.words().len(), phrase.unknown().len());
//! # Ok::<(), cognate::model::ModelError>(())
//! ```

pub mod cli;
pub mod engine;
pub mod eval;
pub mod files;
pub mod http;
pub mod inspect;
pub mod kernels;
pub mod methods;
pub mod metrics;
pub mod model;
pub mod pack;
pub mod page;
pub mod pairs;
pub mod text;
pub mod train;
