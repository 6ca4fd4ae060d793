//! Methods: laws, golden numbers, independent references.

mod golden;
mod laws;
mod oracle;
mod pair_methods;
mod pair_methods_data;
mod polarity;
mod pruned_ranking;
mod ranker;
mod widths;
