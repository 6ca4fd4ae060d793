//! One integration binary: each file tells one story about the built crate.

mod allocation;
mod breaches;
mod damage;
mod layers;
mod model_file;
mod replace;
mod support;
