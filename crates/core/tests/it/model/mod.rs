//! The model file: written, opened, damaged, replaced.

mod breaches;
mod damage;
mod file;
mod replace;
mod shared;
mod unlisted;
