//! A foreign safetensors file with one matrix of floats, whose words stand in a second file.
//!
//! Only the header is parsed, by the format's own library; the rows are read from the file as
//! they are asked for. Our own model files have a stricter profile, which is not known here.

use safetensors::Dtype;
use safetensors::tensor::Metadata;
use safetensors::tensor::TensorInfo;

use super::Place;
use super::ReadError;
use super::input::Input;
use super::input::shown;
use super::matrix::Number;
use super::matrix::Shape;

/// Longest header read, the same as the format's own bound.
const HEADER_BYTES: u64 = 100_000_000;

/// Names that a matrix of word vectors has, most likely first.
const NAMES: [&str; 2] = ["vectors", "embeddings"];

/// Most names listed in a message.
const LISTED: usize = 8;

/// Reads the header, checks it against the file's size, and leaves `input` at the first number of
/// the matrix `tensor`; if none is named, of the one called `vectors`, `embeddings`, or else of the
/// only one in the file.
pub fn find_matrix(input: &mut Input, tensor: Option<&str>) -> Result<Shape, ReadError> {
    if let Some(packing) = input.packing() {
        return Err(input.unsupported(format!("packed with {packing}; unpack it first")));
    }
    let metadata = read_header(input)?;
    let name = match tensor {
        Some(name) => name.to_owned(),
        None => only_matrix(&metadata).map_err(|problem| input.unsupported(problem))?,
    };
    let Some(info) = metadata.info(&name) else {
        let problem = format!("no tensor is called `{name}`; {}", listing(&metadata));
        return Err(input.unsupported(problem));
    };
    let shape = shape(&name, info).map_err(|problem| input.unsupported(problem))?;
    input.skip(info.data_offsets.0 as u64)?;
    Ok(shape)
}

/// The header, once its length and the length of what it describes agree with the file's size.
fn read_header(input: &mut Input) -> Result<Metadata, ReadError> {
    let length = match input.read_exact(8, "the header's length")?.as_chunks().0 {
        [bytes] => u64::from_le_bytes(*bytes),
        _ => 0,
    };
    let left = input.bytes_left().unwrap_or(0);
    let bytes = match usize::try_from(length) {
        Ok(bytes) if length <= left.min(HEADER_BYTES) => bytes,
        _ => {
            let problem = format!(
                "a header of {length} bytes; at most {HEADER_BYTES} are read, and {left} follow"
            );
            return Err(input.malformed(Place::Byte(0), problem));
        }
    };
    let parsed = serde_json::from_slice::<Metadata>(input.read_exact(bytes, "the header")?);
    let place = Place::Byte(input.position());
    let metadata =
        parsed.map_err(|error| input.malformed(Place::Byte(8), format!("the header: {error}")))?;
    let (promised, left) = (metadata.data_len() as u64, input.bytes_left().unwrap_or(0));
    if promised != left {
        let problem = format!("the header describes {promised} bytes of tensors, {left} follow");
        return Err(input.malformed(place, problem));
    }
    Ok(metadata)
}

fn only_matrix(metadata: &Metadata) -> Result<String, String> {
    let matrices: Vec<String> = metadata
        .offset_keys()
        .into_iter()
        .filter(|name| {
            metadata
                .info(name)
                .is_some_and(|info| info.shape.len() == 2)
        })
        .collect();
    let usual = NAMES
        .into_iter()
        .find(|&usual| matrices.iter().any(|name| name == usual));
    match (usual, matrices.as_slice()) {
        (Some(usual), _) => Ok(usual.to_owned()),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(format!("no tensor is a matrix; {}", listing(metadata))),
        (None, _) => Err(format!(
            "several tensors are matrices, name one; {}",
            listing(metadata)
        )),
    }
}

fn listing(metadata: &Metadata) -> String {
    let names = metadata.offset_keys();
    let mut listed: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|name| shown(name.as_bytes()))
        .collect();
    if names.len() > LISTED {
        listed.push(format!("and {} more", names.len() - LISTED));
    }
    format!("the file holds: {}", listed.join(", "))
}

fn shape(name: &str, info: &TensorInfo) -> Result<Shape, String> {
    let &[rows, dims] = info.shape.as_slice() else {
        return Err(format!(
            "the tensor `{name}` has {} dimensions, a matrix has 2",
            info.shape.len()
        ));
    };
    let number = match info.dtype {
        Dtype::F16 => Number::F16,
        Dtype::BF16 => Number::Bf16,
        Dtype::F32 => Number::F32,
        other => {
            return Err(format!(
                "the tensor `{name}` has numbers of the kind {other:?}; only F32, F16 and BF16 are read"
            ));
        }
    };
    Ok(Shape {
        number,
        rows: rows as u64,
        dims: dims as u64,
    })
}
