//! The section `ranker` of a model file: what training writes and serving reads.
//!
//! Settings are JSON as in [`Settings`]; the F32 tensors are those of [`Shape::tensors`]. Every
//! number is checked before it is believed, and every size is bounded, because sizes decide how
//! much work a request is.

use std::collections::BTreeMap;

use cognate_kernels::convolution;
use cognate_kernels::simd::LANES;

use crate::choice::choice;
use crate::model::{Model, ModelError, Section};

/// The section's name.
pub const SECTION: &str = "ranker";

/// Widest kernel, in words.
pub const MAX_KERNEL: usize = convolution::MAX_TAPS;
/// Most kernels of a convolution.
pub const MAX_FILTERS: usize = 1024;
/// Most numbers of an encoded text, and of the joint layer.
pub const MAX_HIDDEN: usize = 1024;
const MAX_ALPHA: f64 = 1000.0;
/// Weights beyond this are no outcome of training; up to it no sum overflows.
pub const MAX_WEIGHT: f32 = 1e6;

/// How a text is encoded for a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoder {
    /// Query and post apart.
    Bicnn,
    /// And the post through kernels made for each word of the query.
    Qatt,
    /// And the post with each word weighted by its cosine to each word of the query.
    Patt,
}

choice!(Encoder { Bicnn = "bicnn", Qatt = "qatt", Patt = "patt" });

/// The settings of the section.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    /// How texts are encoded.
    pub encoder: Encoder,
    /// Words that a kernel spans, k.
    pub kernel: usize,
    /// Kernels of a convolution, F.
    pub filters: usize,
    /// Number of numbers that encode a text: H.
    pub hidden: usize,
    /// Number of numbers in the layer over both texts: J.
    pub joint: usize,
    /// The weight of query likelihood beside the network's score.
    #[serde(default)]
    pub alpha: f64,
    /// A record of the training for human readers; no program reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Settings {
    /// The sizes of the network over word vectors of `dims`.
    pub fn shape(&self, dims: usize) -> Shape {
        let Self { encoder, kernel, filters, hidden, joint, .. } = *self;
        Shape { encoder, dims, kernel, filters, hidden, joint }
    }
}

/// The sizes of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How texts are encoded.
    pub encoder: Encoder,
    /// Dimensions of the word vectors, d.
    pub dims: usize,
    /// Words that a kernel spans, k.
    pub kernel: usize,
    /// Kernels of a convolution, F.
    pub filters: usize,
    /// Number of numbers that encode a text: H.
    pub hidden: usize,
    /// Numbers of the joint layer, J.
    pub joint: usize,
}

impl Shape {
    /// Says which size is not served.
    pub fn check(&self) -> Result<(), String> {
        let sizes = [
            ("kernel", self.kernel, MAX_KERNEL),
            ("filters", self.filters, MAX_FILTERS),
            ("hidden", self.hidden, MAX_HIDDEN),
            ("joint", self.joint, MAX_HIDDEN),
        ];
        match sizes.iter().find(|(_, size, most)| *size == 0 || size > most) {
            Some((name, size, most)) => {
                Err(format!("settings: expected `{name}` from 1 to {most}, got {size}"))
            }
            None => Ok(()),
        }
    }

    /// Encodings of a text that the joint layer reads: of the query, of the post, of the post for
    /// the query.
    pub fn encodings(&self) -> usize {
        if self.encoder == Encoder::Bicnn { 2 } else { 3 }
    }

    /// Returns the name and the shape of every tensor of the section.
    pub fn tensors(&self) -> Vec<(&'static str, Vec<usize>)> {
        let Self { dims: d, kernel: k, filters: f, hidden: h, joint: j, .. } = *self;
        let mut tensors = vec![
            ("general.kernels", vec![k, f, d]),
            ("general.bias", vec![f]),
            ("general.weight", vec![h, f]),
            ("general.offset", vec![h]),
        ];
        if self.encoder != Encoder::Bicnn {
            tensors.extend([
                ("attention.kernels", vec![k, f, d]),
                ("attention.bias", vec![f]),
                ("attention.weight", vec![h, f]),
                ("attention.offset", vec![h]),
            ]);
        }
        tensors.extend([
            ("joint.weight", vec![j, self.encodings() * h]),
            ("joint.offset", vec![j]),
            ("norm.scale", vec![j]),
            ("norm.shift", vec![j]),
            ("output.weight", vec![2, j]),
            ("output.offset", vec![2]),
        ]);
        tensors
    }
}

/// A convolution and the layer above it, with zeros after the last kernel up to whole registers:
/// they add nothing to any sum.
#[derive(Debug, Default)]
pub(super) struct Encoding {
    /// `[k, F', d]`.
    pub kernels: Vec<f32>,
    /// `[F']`.
    pub bias: Vec<f32>,
    /// `[H, F']`.
    pub weight: Vec<f32>,
    /// `[H]`.
    pub offset: Vec<f32>,
}

#[derive(Debug)]
pub(super) struct Weights {
    pub shape: Shape,
    /// F rounded up to whole registers, F'.
    pub width: usize,
    pub general: Encoding,
    /// Empty for [`Encoder::Bicnn`].
    pub attention: Encoding,
    /// The columns of the joint layer that read the query, `[J, H]`.
    pub joint_query: Vec<f32>,
    /// The columns that read the post, `[J, H]` or `[J, 2 H]`.
    pub joint_post: Vec<f32>,
    /// `[J]`.
    pub joint_offset: Vec<f32>,
    /// `[J]`.
    pub scale: Vec<f32>,
    /// `[J]`.
    pub shift: Vec<f32>,
    /// The weights of one output minus those of the other, `[J]`.
    pub output: Vec<f64>,
    /// The difference of the offsets of both outputs.
    pub output_offset: f64,
}

/// The settings of a model's section, if it has one.
pub fn settings(model: &Model) -> Result<Option<Settings>, ModelError> {
    let Some(section) = model.section(SECTION) else { return Ok(None) };
    let settings: Settings = section.parse_settings()?;
    if !(0.0..=MAX_ALPHA).contains(&settings.alpha) {
        let problem = format!("settings: expected `alpha` from 0 to {MAX_ALPHA}");
        return Err(section.broken(problem));
    }
    settings.shape(model.dims()).check().map_err(|problem| section.broken(problem))?;
    Ok(Some(settings))
}

pub(super) fn weights(model: &Model, shape: Shape) -> Result<Option<Weights>, ModelError> {
    let Some(section) = model.section(SECTION) else { return Ok(None) };
    let mut tensors = BTreeMap::new();
    for (name, sides) in shape.tensors() {
        tensors.insert(name, numbers(&section, name, &sides)?);
    }
    let mut take = |name: &str| tensors.remove(name).unwrap_or_default();
    let width = shape.filters.next_multiple_of(LANES);
    let mut encoding = |kernels: &str, bias: &str, weight: &str, offset: &str| Encoding {
        kernels: padded(&take(kernels), shape.filters * shape.dims, width * shape.dims),
        bias: padded(&take(bias), shape.filters, width),
        weight: padded(&take(weight), shape.filters, width),
        offset: take(offset),
    };
    let general = encoding("general.kernels", "general.bias", "general.weight", "general.offset");
    let attention =
        encoding("attention.kernels", "attention.bias", "attention.weight", "attention.offset");
    let joint = take("joint.weight");
    let columns = shape.encodings() * shape.hidden;
    let part = |from: usize, end: usize| -> Vec<f32> {
        let rows = joint.chunks_exact(columns);
        rows.flat_map(|row| row.get(from..end).unwrap_or_default()).copied().collect()
    };
    let difference = |pair: &[f32]| -> Vec<f64> {
        let (first, second) = pair.split_at(pair.len() / 2);
        first.iter().zip(second).map(|(&a, &b)| f64::from(a) - f64::from(b)).collect()
    };
    Ok(Some(Weights {
        shape,
        width,
        general,
        attention,
        joint_query: part(0, shape.hidden),
        joint_post: part(shape.hidden, columns),
        joint_offset: take("joint.offset"),
        scale: take("norm.scale"),
        shift: take("norm.shift"),
        output: difference(&take("output.weight")),
        output_offset: difference(&take("output.offset")).iter().sum(),
    }))
}

/// A tensor of this shape, each number of it finite and of a size that training could give.
fn numbers(section: &Section<'_>, name: &str, sides: &[usize]) -> Result<Vec<f32>, ModelError> {
    let sides: Vec<Option<u64>> = sides.iter().map(|&side| Some(side as u64)).collect();
    let numbers = section.floats_shaped(name, &sides)?;
    match numbers.iter().position(|number| number.abs() > MAX_WEIGHT) {
        Some(at) => Err(section.broken(format!(
            "tensor `{name}`: number {at} is beyond {MAX_WEIGHT:e}, which no training gives"
        ))),
        None => Ok(numbers.to_vec()),
    }
}

fn padded(numbers: &[f32], length: usize, wanted: usize) -> Vec<f32> {
    let zeros = std::iter::repeat_n(0.0, wanted.saturating_sub(length));
    let rows = numbers.chunks_exact(length.max(1));
    rows.flat_map(|row| row.iter().copied().chain(zeros.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape =
        Shape { encoder: Encoder::Patt, dims: 3, kernel: 2, filters: 7, hidden: 5, joint: 6 };

    #[test]
    fn the_joint_layer_reads_as_many_encodings_as_there_are() {
        let side = |encoder| {
            let tensors = Shape { encoder, ..SHAPE }.tensors();
            let joint = tensors.iter().find(|(name, _)| *name == "joint.weight").unwrap();
            (tensors.len(), joint.1.clone())
        };
        assert_eq!(side(Encoder::Bicnn), (10, vec![6, 10]));
        assert_eq!(side(Encoder::Qatt), (14, vec![6, 15]));
        assert_eq!(side(Encoder::Patt), (14, vec![6, 15]));
    }

    #[test]
    fn sizes_have_ends() {
        assert_eq!(SHAPE.check(), Ok(()));
        for broken in [
            Shape { kernel: 0, ..SHAPE },
            Shape { kernel: MAX_KERNEL + 1, ..SHAPE },
            Shape { filters: usize::MAX, ..SHAPE },
            Shape { hidden: 0, ..SHAPE },
            Shape { joint: MAX_HIDDEN + 1, ..SHAPE },
        ] {
            assert!(broken.check().unwrap_err().contains("expected `"));
        }
    }

    #[test]
    fn settings_are_read_as_training_writes_them() {
        let plain = r#"{"encoder":"qatt","kernel":2,"filters":7,"hidden":5,"joint":6}"#;
        let settings: Settings = serde_json::from_str(plain).unwrap();
        assert_eq!((settings.alpha, &settings.trained), (0.0, &None));
        assert_eq!(settings.shape(3), Shape { encoder: Encoder::Qatt, ..SHAPE });
        assert_eq!(settings.encoder.name(), "qatt");
        let told = r#"{"encoder":"patt","kernel":2,"filters":7,"hidden":5,"joint":6,
            "alpha":0.15,"trained":{"epochs":15,"files":["a"]}}"#;
        let settings: Settings = serde_json::from_str(told).unwrap();
        let again = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&again).unwrap(), settings);
        assert!(serde_json::from_str::<Settings>(r#"{"encoder":"cnn"}"#).is_err());
    }

    #[test]
    fn rows_are_filled_up_with_zeros() {
        assert_eq!(padded(&[1.0, 2.0, 3.0, 4.0], 2, 3), [1.0, 2.0, 0.0, 3.0, 4.0, 0.0]);
        assert!(padded(&[], 7, 16).is_empty());
    }
}
