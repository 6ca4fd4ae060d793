//! What passes between JavaScript and this module, by addresses in the module's memory: the only place
//! that trusts the other side.
//!
//! Bytes are reserved, written by JavaScript, and handed over: whoever takes them frees them. An answer
//! begins with six numbers of 32 bits: 0 or 1 for a failure, address and length of its JSON, address and
//! count of its floats, and the address of the engine that was opened.

#![allow(unsafe_code)]

use cognate::Engine;
use cognate::model::bytes::AlignedBytes;

use crate::Answer;
use crate::error::Problem;

/// An answer where JavaScript reads it.
#[repr(C)]
pub struct Reply {
    failed: u32,
    json_at: *const u8,
    json_bytes: usize,
    numbers_at: *const f32,
    numbers_count: usize,
    engine: *mut Engine,
    json: String,
    numbers: Vec<f32>,
}

fn reply(answered: Result<Answer, Problem>, engine: Option<Engine>) -> *mut Reply {
    let (failed, answer) = match answered {
        Ok(answer) => (0, answer),
        Err(problem) => (1, problem.told().into()),
    };
    let (json, numbers) = (answer.json.to_string(), answer.numbers);
    Box::into_raw(Box::new(Reply {
        failed,
        json_at: json.as_ptr(),
        json_bytes: json.len(),
        numbers_at: numbers.as_ptr(),
        numbers_count: numbers.len(),
        engine: engine.map_or(std::ptr::null_mut(), |engine| Box::into_raw(Box::new(engine))),
        json,
        numbers,
    }))
}

/// Reserves memory for bytes; null if there is not so much.
#[unsafe(no_mangle)]
pub extern "C" fn bytes_reserve(length: usize) -> *mut AlignedBytes {
    AlignedBytes::zeroed(length)
        .map_or(std::ptr::null_mut(), |bytes| Box::into_raw(Box::new(bytes)))
}

/// Where reserved bytes are to be written.
///
/// # Safety
///
/// `bytes` were reserved, and not yet handed over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bytes_at(bytes: *mut AlignedBytes) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { &mut *bytes }.as_mut_slice().as_mut_ptr()
}

/// Opens a model of bytes, which are handed over.
///
/// # Safety
///
/// `bytes` were reserved, and not yet handed over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_open(bytes: *mut AlignedBytes) -> *mut Reply {
    // SAFETY: the caller's promise.
    let bytes = unsafe { Box::from_raw(bytes) };
    match crate::open(*bytes) {
        Ok(engine) => reply(Ok(serde_json::Value::Null.into()), Some(engine)),
        Err(problem) => reply(Err(problem), None),
    }
}

/// Asks a question. Settings are JSON, texts stand one after another with a line feed after each, and
/// lengths are those of JavaScript's strings, as numbers of 32 bits. All three are handed over.
///
/// # Safety
///
/// `engine` was opened and not yet closed; the others were reserved, and not yet handed over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_ask(
    engine: *const Engine,
    settings: *mut AlignedBytes,
    texts: *mut AlignedBytes,
    lengths: *mut AlignedBytes,
) -> *mut Reply {
    // SAFETY: the caller's promise.
    let (engine, settings, texts, lengths) = unsafe {
        (&*engine, Box::from_raw(settings), Box::from_raw(texts), Box::from_raw(lengths))
    };
    reply(crate::ask(engine, settings.as_slice(), texts.as_slice(), lengths.as_slice()), None)
}

/// Frees an answer, but not an engine that it brought.
///
/// # Safety
///
/// `reply` came from here, and was not yet freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reply_free(reply: *mut Reply) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(reply) });
}

/// Closes a model.
///
/// # Safety
///
/// `engine` was opened, and not yet closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_close(engine: *mut Engine) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(engine) });
}
