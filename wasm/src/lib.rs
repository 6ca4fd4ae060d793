//! cognate's library as JavaScript sees it: a model of bytes, and questions asked of it.
//!
//! JavaScript's own side (`lib/cognate.js`) checks what users write and gives answers their shape; this
//! side asks the engine. Texts, settings and answers pass through the memory of the module
//! ([`memory`]); it knows no browser and no file, and computes no score.

mod embed;
mod error;
mod events;
mod explain;
mod memory;
mod methods;
mod pairs;
mod question;
mod rank;

use cognate::Engine;
use cognate::model::bytes::AlignedBytes;
use cognate::model::{Model, OpenOptions};
use serde_json::Value;

use crate::error::Problem;
use crate::question::{Asked, Question};

/// What is answered: words and counts, and numbers that would be slow to write out.
pub(crate) struct Answer {
    json: Value,
    numbers: Vec<f32>,
}

impl From<Value> for Answer {
    fn from(json: Value) -> Self {
        Self { json, numbers: Vec::new() }
    }
}

/// A model of bytes, every one of them checked.
fn open(bytes: AlignedBytes) -> Result<Engine, Problem> {
    let model = Model::from_aligned(bytes, &OpenOptions::default());
    Ok(model.and_then(Engine::new)?)
}

/// The answer to one question.
fn ask(engine: &Engine, settings: &[u8], texts: &[u8], lengths: &[u8]) -> Result<Answer, Problem> {
    let question = Question::read(engine, settings, texts, lengths)?;
    match question.asked {
        Asked::About => Ok(methods::about(engine).into()),
        Asked::Methods => Ok(methods::all(engine).into()),
        Asked::Pairs => pairs::answer(engine, &question),
        Asked::Rank => rank::answer(engine, &question),
        Asked::Embed => embed::answer(engine, &question),
        Asked::Explain => explain::answer(engine, &question),
        Asked::Events => events::answer(engine, &question),
    }
}
