//! Laws, golden numbers, oracles and damaged files: what holds for the library, whoever uses it.

#![allow(clippy::unwrap_used)]

mod choices;
mod engine;
mod fuse;
mod methods;
mod model;
mod presets;
