//! Which tensors a model file holds, in which order, of which types and shapes: the table at the top
//! of `format.rs`, as a check. Where their bytes lie was checked before.

use cognate_kernels::simd::bytes;

use crate::model::error::FormatError;
use crate::model::vectors::{Dtype, Tensor};

/// Names, order, types and shapes of the tensors of `v` words and `d` dimensions: what the table at
/// the top of `format.rs` says.
pub(crate) fn check(tensors: &[Tensor], v: u64, d: u64) -> Result<(), FormatError> {
    let mut rest = tensors;
    let quantised = tensors.first().is_some_and(|first| first.dtype == Dtype::I8);
    let expect = [
        ("vectors", &[Dtype::F32, Dtype::F16, Dtype::I8][..], Shape::Matrix(v, d), true),
        ("scales", &[Dtype::F32], Shape::List(v), quantised),
        ("vocab_bytes", &[Dtype::U8], Shape::AnyList, true),
        ("vocab_offsets", &[Dtype::U64], Shape::List(v.saturating_add(1)), true),
        ("vocab_index", &[Dtype::U32], Shape::Index(v), true),
        ("counts", &[Dtype::U64], Shape::List(v), false),
        ("df", &[Dtype::U32], Shape::List(v), false),
        ("idf", &[Dtype::F32], Shape::List(v), false),
    ];
    for (name, dtypes, shape, required) in expect {
        match rest.split_first() {
            Some((tensor, others)) if tensor.name == name => {
                if name == "scales" && !quantised {
                    return Err(unexpected(tensor, "only I8 vectors have scales"));
                }
                accept(tensor, dtypes, shape)?;
                if name == "vectors" && quantised && d > bytes::MAX_DIMS as u64 {
                    let problem = "products of so many bytes do not fit 32 bits";
                    return Err(unexpected(tensor, problem));
                }
                rest = others;
            }
            _ if required => {
                return Err(FormatError::MissingTensor { name: name.to_owned() });
            }
            _ => {}
        }
    }
    let mut previous = "";
    for tensor in rest {
        let parts = tensor.name.strip_prefix("section.").and_then(|name| name.split_once('.'));
        if !parts.is_some_and(|(section, name)| !section.is_empty() && !name.is_empty()) {
            return Err(unexpected(tensor, "unknown name, or out of order"));
        }
        if tensor.name.as_str() <= previous {
            return Err(unexpected(tensor, "sections must be sorted by name"));
        }
        previous = &tensor.name;
    }
    Ok(())
}

pub(crate) fn accept(tensor: &Tensor, dtypes: &[Dtype], shape: Shape) -> Result<(), FormatError> {
    match dtypes.contains(&tensor.dtype) && shape.accepts(&tensor.shape) {
        true => Ok(()),
        false => Err(FormatError::Shape {
            name: tensor.name.clone(),
            expected: format!("{} {shape}", spell(dtypes)),
            got: format!("{} {:?}", tensor.dtype.name(), tensor.shape),
        }),
    }
}

pub(crate) enum Shape {
    Matrix(u64, u64),
    List(u64),
    AnyList,
    Index(u64),
}

impl Shape {
    fn accepts(&self, shape: &[u64]) -> bool {
        match (self, shape) {
            (Self::Matrix(rows, columns), [r, c]) => r == rows && c == columns,
            (Self::List(length), [n]) => n == length,
            (Self::AnyList, [_]) => true,
            // Without an empty slot a look-up of an unknown word would never end.
            (Self::Index(words), [slots, 2]) => slots.is_power_of_two() && slots > words,
            _ => false,
        }
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Matrix(rows, columns) => write!(f, "[{rows}, {columns}]"),
            Self::List(length) => write!(f, "[{length}]"),
            Self::AnyList => write!(f, "[any]"),
            Self::Index(words) => write!(f, "[a power of two above {words}, 2]"),
        }
    }
}

fn spell(dtypes: &[Dtype]) -> String {
    dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(" or ")
}

fn unexpected(tensor: &Tensor, problem: &'static str) -> FormatError {
    FormatError::UnexpectedTensor { name: tensor.name.clone(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_bytes_whose_products_could_overflow_are_refused() {
        let tensor = |name: &str, dtype, shape: &[u64]| Tensor {
            name: name.to_owned(),
            dtype,
            shape: shape.to_vec(),
            range: 0..0,
            digest: String::new(),
        };
        let of = |dims: u64| {
            let mut tensors = vec![
                tensor("vectors", Dtype::I8, &[1, dims]),
                tensor("scales", Dtype::F32, &[1]),
                tensor("vocab_bytes", Dtype::U8, &[3]),
                tensor("vocab_offsets", Dtype::U64, &[2]),
                tensor("vocab_index", Dtype::U32, &[2, 2]),
            ];
            let of_bytes = check(&tensors, 1, dims);
            tensors.remove(1);
            tensors[0].dtype = Dtype::F32;
            check(&tensors, 1, dims).unwrap();
            of_bytes
        };
        assert!(of(bytes::MAX_DIMS as u64).is_ok());
        let refused = of(bytes::MAX_DIMS as u64 + 1).unwrap_err().to_string();
        assert!(refused.contains("do not fit 32 bits"), "{refused}");
    }
}
