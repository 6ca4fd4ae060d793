//! What holds for every command: numbers, files, runs side by side.

mod files_written;
mod found_model;
mod numbers;
mod questions;
mod shell;
mod side_by_side;
