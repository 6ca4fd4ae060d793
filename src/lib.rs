//! cognate says how alike very short texts are (tweets, headlines, titles, queries), in
//! microseconds on a CPU, from word vectors and idf tables that it memory-maps.
//!
//! This crate is the service's library; the binary `cognate` is a thin command line over it.
//! The modules, lowest layer first; each may use only modules above it in this table:
//!
//! | module | what it knows |
//! |---|---|
//! | [`random`] | seeded generators whose draws never change |
//! | [`kernels`] | products of rows, principal axes, optimal transport, kinds of bytes: numbers, no words, no files |
//! | [`text`] | `&str` to tokens: Unicode, case, splitting, the same for packing, training, serving |
//! | [`files`] | files of others read from front to back: unpacked, counted, with a bar |
//! | [`page`] | one HTML page without scripts, and the frame of a plot |
//! | [`stats`] | the measures of evaluation and their significance tests |
//! | [`model`] | the model file: format, mapping, vocabulary, vectors, a text looked up, the writer |
//! | [`methods`] | every way of saying how alike two texts are, by name |
//! | [`engine`] | one model, every method, and the questions that can be asked of them |
//! | [`window`] | the last texts of a stream, the nearest of each among them, and their events |
//! | [`collection`] | texts that are remembered: their names, times and attributes, in memory, in a log that replicas read, or in a database |
//! | [`events`] | a stream of texts written back with the event of each |
//! | [`pack`] | foreign vectors and counts become a model file |
//! | [`export`] | a model file becomes a folder for model2vec or sentence-transformers |
//! | [`fit`] | a model file gets what methods fit to it |
//! | [`train`] | what methods learn from texts, and how a run goes on after a crash |
//! | [`inspect`] | what is inside a model file |
//! | [`pairs`] | labelled pairs of texts, made from unlabelled text |
//! | [`eval`] | methods measured on labelled texts: tables, reports, thresholds |
//! | [`bulk`] | a question asked of every row of files |
//! | [`dedupe`] | near-duplicates among very many texts |
//! | [`http`] | the service: routes, limits, admission, reload; the only module with axum, tokio and tower |
//! | [`cli`] | flags turned into the options of each subcommand, and one question asked without a service |
//!
//! `events`, `pack`, `export`, `fit`, `train`, `inspect`, `pairs`, `eval`, `bulk`, `dedupe` and `http` stand beside each other and do not
//! use one another. A test reads the imports of every file and holds them to this order.
//!
//! [`Engine`], [`Query`], [`Method`] and [`Measure`] are all that most programs need:
//!
//! ```
//! use cognate::{Engine, Query};
//!
//! let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
//! let query = Query::new(engine.method("auto")?);
//! let pairs = [("Quake hits L.A.!!", "Earthquake shakes Los Angeles")];
//! let similar = engine.similarity(&pairs, &query)?;
//! assert!(similar.scores[0] > 0.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The features `cli`, `http`, `train`, `eval` and `bulk` are on by default; a library user who needs none of
//! them sets `default-features = false`. Where there are no files of Unix, as in WebAssembly, the crate
//! is the library alone without the modules that read and write files, and a model is made of bytes
//! ([`Model::from_bytes`]).

#[cfg(feature = "bulk")]
pub mod bulk;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(unix)]
pub mod collection;
#[cfg(feature = "bulk")]
pub mod dedupe;
pub mod engine;
#[cfg(feature = "eval")]
pub mod eval;
#[cfg(unix)]
pub mod events;
#[cfg(unix)]
pub mod export;
#[cfg(unix)]
pub mod files;
#[cfg(unix)]
pub mod fit;
#[cfg(feature = "http")]
pub mod http;
#[cfg(unix)]
pub mod inspect;
pub mod kernels;
pub mod methods;
pub mod model;
#[cfg(unix)]
pub mod pack;
pub mod page;
#[cfg(unix)]
pub mod pairs;
pub mod random;
pub mod stats;
pub mod text;
#[cfg(feature = "train")]
pub mod train;
pub mod window;

pub use engine::{Engine, Measure, Query};
pub use methods::Method;
pub use model::Model;

/// README's code is run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
