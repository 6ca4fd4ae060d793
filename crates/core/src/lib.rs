//! cognate says how alike very short texts are (tweets, headlines, titles, queries), in
//! microseconds on a CPU, from word vectors and idf tables that it memory-maps.
//!
//! The modules, lowest first; each may use only those above it in this table:
//!
//! | module | what it knows |
//! |---|---|
//! | [`choice`] | choices that are made by name, and values that are none of those expected |
//! | [`text`] | `&str` to tokens: Unicode, case, splitting, the same for packing, training, serving |
//! | [`model`] | the model file: format, mapping, vocabulary, vectors, a text looked up, the writer |
//! | [`methods`] | every way of saying how alike two texts are, by name |
//! | [`engine`] | one model, every method, and the questions that can be asked of them |
//! | [`window`] | the last texts of a stream, the nearest of each among them, and their events |
//!
//! [`Engine`], [`Query`], [`Method`] and [`Measure`] are all that most programs need:
//!
//! ```
//! use cognate::{Engine, Query};
//!
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
//! let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
//! let query = Query::new(engine.method("auto")?);
//! let pairs = [("Quake hits L.A.!!", "Earthquake shakes Los Angeles")];
//! let similar = engine.similarity(&pairs, &query)?;
//! assert!(similar.scores[0] > 0.5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where there are no files of Unix, as in WebAssembly, a model is made of bytes ([`Model::from_bytes`]).

pub mod choice;
pub mod engine;
pub mod methods;
pub mod model;
pub mod text;
pub mod window;

pub use engine::{Engine, Measure, Query};
pub use methods::Method;
pub use model::Model;
