//! A cache on disk for the vectors of teachers: a killed run resumes, and a run with other settings
//! only embeds new texts.
//!
//! Texts are embedded in parts. A part's file is named by a digest of the teacher and the part's
//! texts, so its content does not depend on the run that wrote it. A damaged file is replaced.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

use cognate::model::disk;
use cognate_files::progress::Progress;
use cognate_train::TrainError;
use half::f16;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use crate::teacher::Teacher;

/// Texts of a part: half a minute of work for a small teacher.
const PART: usize = 16_384;
/// The name of the tensor in a part.
const TENSOR: &str = "embeddings";
/// The metadata key of its digest.
const DIGEST: &str = "digest";

#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

/// How many texts were embedded, and how long it took.
#[derive(Debug, Clone, Copy, Default)]
pub struct EmbeddingCount {
    /// Number of texts that were not in the cache.
    pub texts: usize,
    pub time: Duration,
}

/// Vectors of texts, one after another, each of length 1 or all zeros.
#[derive(Debug, Clone, Default)]
pub struct Embeddings {
    pub rows: Vec<f16>,
    pub width: usize,
}

impl Cache {
    /// The cache in this folder, which is created if necessary.
    pub fn open(folder: &Path) -> Result<Self, TrainError> {
        fs::create_dir_all(folder).map_err(|source| unwritten(folder, source))?;
        Ok(Self { folder: folder.to_owned() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The vectors of texts; reads from disk those that are cached.
    pub fn embed(
        &self,
        teacher: &Teacher,
        texts: &[&[String]],
        asked: &mut EmbeddingCount,
    ) -> Result<Vec<Embeddings>, TrainError> {
        let all: usize = texts.iter().map(|texts| texts.len()).sum();
        let progress = Progress::run("embedding");
        let (done, fresh) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut spent = Duration::ZERO;
        let mut found = Vec::with_capacity(texts.len());
        for texts in texts {
            let mut embeddings = Embeddings { rows: Vec::new(), width: teacher.width() };
            embeddings.rows.reserve(texts.len() * teacher.width());
            for part in texts.chunks(PART) {
                let path = self.path(teacher, part);
                if let Some(rows) = load(&path, [part.len(), teacher.width()]) {
                    done.fetch_add(part.len(), Ordering::Relaxed);
                    embeddings.rows.extend(rows);
                    continue;
                }
                let begun = Instant::now();
                let rows = teacher.embed(part, &|more| {
                    let done = done.fetch_add(more, Ordering::Relaxed) + more;
                    let fresh = fresh.fetch_add(more, Ordering::Relaxed) + more;
                    progress.at(done as u64, all as u64);
                    let seconds = (spent + begun.elapsed()).as_secs_f64().max(1e-9);
                    progress.say(format!("{:.0} texts/s", fresh as f64 / seconds));
                })?;
                save(&path, &rows, teacher.width()).map_err(|source| unwritten(&path, source))?;
                spent += begun.elapsed();
                asked.texts += part.len();
                embeddings.rows.extend(rows);
            }
            found.push(embeddings);
        }
        asked.time += spent;
        Ok(found)
    }

    fn path(&self, teacher: &Teacher, texts: &[String]) -> PathBuf {
        let mut digest = blake3::Hasher::new();
        digest.update(teacher.digest().as_bytes());
        for text in texts {
            digest.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        let name: String = digest.finalize().to_hex().chars().take(32).collect();
        self.folder.join(format!("{name}.safetensors"))
    }
}

impl Embeddings {
    pub fn len(&self) -> usize {
        self.rows.len().checked_div(self.width).unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The vector of a text.
    ///
    /// # Panics
    ///
    /// If there is no such text.
    pub fn row(&self, text: usize) -> &[f16] {
        &self.rows[text * self.width..(text + 1) * self.width]
    }
}

fn unwritten(path: &Path, source: io::Error) -> TrainError {
    TrainError::Write { path: path.to_owned(), source }
}

/// The numbers of a part, if its file exists and is undamaged.
fn load(path: &Path, [texts, width]: [usize; 2]) -> Option<Vec<f16>> {
    let bytes = fs::read(path).ok()?;
    let (_, header) = SafeTensors::read_metadata(&bytes).ok()?;
    let digest = header.metadata().as_ref()?.get(DIGEST)?;
    let tensors = SafeTensors::deserialize(&bytes).ok()?;
    let tensor = tensors.tensor(TENSOR).ok()?;
    let fits = tensor.dtype() == Dtype::F16 && tensor.shape() == [texts, width];
    if !fits || blake3::hash(tensor.data()).to_hex().as_str() != digest {
        return None;
    }
    let numbers = tensor.data().as_chunks::<2>().0;
    Some(numbers.iter().map(|&bytes| f16::from_le_bytes(bytes)).collect())
}

fn save(path: &Path, rows: &[f16], width: usize) -> io::Result<()> {
    let bytes: &[u8] = bytemuck::cast_slice(rows);
    let digest = blake3::hash(bytes).to_hex().to_string();
    // safetensors takes any map type; its support for the standard library's is a feature.
    let metadata = [(DIGEST.to_owned(), digest)].into_iter().collect();
    let shape = vec![rows.len() / width.max(1), width];
    let tensor = TensorView::new(Dtype::F16, shape, bytes).map_err(io::Error::other)?;
    let bytes =
        safetensors::serialize([(TENSOR, tensor)], Some(metadata)).map_err(io::Error::other)?;
    disk::replace_by(path, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part.safetensors");
        let rows: Vec<f16> = (0..12).map(|number| f16::from_f32(number as f32)).collect();
        save(&path, &rows, 4).unwrap();
        assert_eq!(load(&path, [3, 4]), Some(rows.clone()));
        assert_eq!(load(&path, [4, 3]), None, "another shape");
        let whole = fs::read(&path).unwrap();
        for cut in [0, 7, 60, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(load(&path, [3, 4]), None, "cut at {cut}");
        }
        let mut turned = whole.clone();
        *turned.last_mut().unwrap() ^= 1;
        fs::write(&path, &turned).unwrap();
        assert_eq!(load(&path, [3, 4]), None, "a damaged number");
        assert_eq!(load(&folder.path().join("none"), [3, 4]), None);
    }
}
