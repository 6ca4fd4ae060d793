//! Readers of foreign formats against files that others wrote, bounds on their memory, and exports.

#![allow(clippy::unwrap_used)]

mod export_golden;
mod fasttext_bin;
mod fasttext_bin_data;
mod finalfusion;
mod importer_memory;
mod importers_data;
#[cfg(feature = "model2vec")]
mod model2vec;
mod polarity;
