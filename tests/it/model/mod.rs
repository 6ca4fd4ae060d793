//! The model file: written, opened, damaged, replaced.

pub mod breaches;
mod damage;
mod file;
mod overflow;
mod replace;
