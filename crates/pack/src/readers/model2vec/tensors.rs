//! `model.safetensors` of a model2vec folder: which tensors there are, of which numbers and shape,
//! and where they begin. Reads no vectors.

use safetensors::Dtype;
use safetensors::tensor::Metadata;

use crate::readers::positioned::Source;
use crate::readers::{Budget, ReadError};

const MOST_HEADER_BYTES: u64 = 1 << 20;

/// Numbers in rows. They were checked to lie within the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tensor {
    pub(super) dtype: Dtype,
    pub(super) begin: u64,
    pub(super) rows: u64,
    pub(super) dims: usize,
}

impl Tensor {
    pub(super) fn number_bytes(self) -> u64 {
        self.dtype.bitsize() as u64 / 8
    }

    /// Where a row of `dims` numbers begins; cannot overflow for a row that there is.
    pub(super) fn at(self, row: u64, dims: u64) -> u64 {
        self.begin + row * dims * self.number_bytes()
    }
}

pub(super) struct Header {
    pub(super) embeddings: Tensor,
    pub(super) weights: Option<Tensor>,
    pub(super) mapping: Option<Tensor>,
}

impl Header {
    /// Reads the header and checks every tensor that matters against it and the file's size.
    pub(super) fn read(source: &Source, budget: Budget) -> Result<Self, ReadError> {
        let mut length = [0; 8];
        source.read_at(0, &mut length)?;
        let length = u64::from_le_bytes(length);
        // Eight bytes were read, so there are at least as many.
        if length > MOST_HEADER_BYTES.min(source.len() - 8) {
            let problem = format!("a header of {length} bytes does not fit");
            return Err(source.malformed(0, problem));
        }
        let mut json = vec![0; length as usize];
        source.read_at(8, &mut json)?;
        let metadata: Metadata = serde_json::from_slice(&json)
            .map_err(|error| source.malformed(8, format!("expected a header: {error}")))?;
        let begin = 8 + length;
        let data = source.len() - begin;
        if metadata.data_len() as u64 != data {
            let problem = format!("expected {} bytes of data, found {data}", metadata.data_len());
            return Err(source.malformed(begin, problem));
        }
        let embeddings = ["embeddings", "0", "embedding.weight"]
            .iter()
            .find_map(|&name| metadata.info(name).map(|info| (name, info)));
        let Some((name, info)) = embeddings else {
            return Err(source.malformed(8, "expected a tensor `embeddings`, found none"));
        };
        let [rows, dims] = info.shape[..] else {
            let problem = format!("expected `{name}` with two dimensions, found {:?}", info.shape);
            return Err(source.malformed(8, problem));
        };
        if dims == 0 || dims > budget.dims {
            let problem = format!("expected vectors of 1 to {} numbers, found {dims}", budget.dims);
            return Err(source.malformed(8, problem));
        }
        check_dtype(source, name, info.dtype, &[Dtype::F32, Dtype::F16, Dtype::I8])?;
        let at = begin + info.data_offsets.0 as u64;
        let embeddings = Tensor { dtype: info.dtype, begin: at, rows: rows as u64, dims };
        let column = |name: &str, dtypes: &[Dtype]| {
            let Some(info) = metadata.info(name) else {
                return Ok(None);
            };
            let [rows] = info.shape[..] else {
                let problem = format!("expected `{name}` in one row, found {:?}", info.shape);
                return Err(source.malformed(8, problem));
            };
            check_dtype(source, name, info.dtype, dtypes)?;
            let begin = begin + info.data_offsets.0 as u64;
            Ok(Some(Tensor { dtype: info.dtype, begin, rows: rows as u64, dims: 1 }))
        };
        let weights = column("weights", &[Dtype::F64, Dtype::F32, Dtype::F16])?;
        let mapping = column("mapping", &[Dtype::I32, Dtype::I64])?;
        Ok(Self { embeddings, weights, mapping })
    }
}

fn check_dtype(
    source: &Source,
    name: &str,
    found: Dtype,
    taken: &[Dtype],
) -> Result<(), ReadError> {
    if taken.contains(&found) {
        return Ok(());
    }
    Err(source.unsupported(format!("`{name}` of type {found}; one of {taken:?} is taken")))
}
