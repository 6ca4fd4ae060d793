//! One integration binary: each file tells one story about the built crate.
#[cfg(test)]
mod fasttext_bin;
#[cfg(test)]
mod fasttext_bin_shared;
#[cfg(test)]
mod finalfusion;
#[cfg(test)]
#[cfg(feature = "model2vec")]
mod model2vec;
#[cfg(test)]
#[cfg(feature = "model2vec")]
mod model2vec_shared;
#[cfg(test)]
mod shared_data;
