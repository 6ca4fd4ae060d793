//! The tensors of an encoder, taken from `model.safetensors` by name and checked against the sizes
//! that its configuration states.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use candle_core::safetensors::Load;
use candle_core::{DType, Device, Tensor};
use cognate_files::ReadError;
use cognate_train::TrainError;
use safetensors::SafeTensors;

use crate::teacher::folder::wrong;

/// Largest file of tensors.
const MOST_BYTES: u64 = 8 << 30;
/// What some programs put before every name.
const PREFIXES: [&str; 3] = ["", "bert.", "mpnet."];
/// A tensor that every encoder has.
const ALWAYS: &str = "embeddings.word_embeddings.weight";

/// The bytes of a folder's tensors.
pub(super) fn read(folder: &Path) -> Result<Vec<u8>, TrainError> {
    let path = folder.join("model.safetensors");
    let pickle = folder.join("pytorch_model.bin");
    if !path.exists() && pickle.exists() {
        let problem = "a pickle, which is a program and not read; convert it with \
                       `SentenceTransformer(FOLDER).save(OTHER, safe_serialization=True)`";
        return Err(wrong(&pickle, problem));
    }
    let failed = |source| ReadError::Io { path: path.clone(), source };
    let metadata = path.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(wrong(&path, "not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(&path).map_err(failed)?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(wrong(&path, format!("more than {MOST_BYTES} bytes")));
    }
    Ok(bytes)
}

/// Tensors by name, on one device.
pub(super) struct Tensors<'b> {
    file: &'b Path,
    found: SafeTensors<'b>,
    prefix: &'static str,
    device: &'b Device,
}

impl<'b> Tensors<'b> {
    /// The tensors that `bytes`, read from `file`, hold.
    pub(super) fn of(
        bytes: &'b [u8],
        file: &'b Path,
        device: &'b Device,
    ) -> Result<Self, TrainError> {
        let found = SafeTensors::deserialize(bytes)
            .map_err(|error| wrong(file, format!("not a safetensors file: {error}")))?;
        let begins = |prefix: &&str| found.tensor(&format!("{prefix}{ALWAYS}")).is_ok();
        let prefix = PREFIXES.into_iter().find(begins).unwrap_or_default();
        Ok(Self { file, found, prefix, device })
    }

    /// A tensor of this shape, in single precision.
    pub(super) fn take(&self, name: &str, shape: &[usize]) -> Result<Tensor, TrainError> {
        let name = format!("{}{name}", self.prefix);
        let view = self
            .found
            .tensor(&name)
            .map_err(|_| wrong(self.file, format!("no tensor `{name}`")))?;
        if view.shape() != shape {
            let found = view.shape();
            let problem = format!("tensor `{name}`: expected shape {shape:?}, found {found:?}");
            return Err(wrong(self.file, problem));
        }
        let known = [
            safetensors::Dtype::F32,
            safetensors::Dtype::F16,
            safetensors::Dtype::BF16,
            safetensors::Dtype::F64,
        ];
        if !known.contains(&view.dtype()) {
            let found = view.dtype();
            let problem =
                format!("tensor `{name}`: expected floating-point numbers, found {found}");
            return Err(wrong(self.file, problem));
        }
        let tensor = view.load(self.device)?.to_dtype(DType::F32)?;
        // A sum is finite only if every number is.
        if !tensor.sqr()?.sum_all()?.to_vec0::<f32>()?.is_finite() {
            return Err(wrong(self.file, format!("tensor `{name}` holds what is no number")));
        }
        Ok(tensor)
    }
}
