//! `cognate pack`: foreign word vectors and counts become one model file.
pub mod readers;
