//! What is remembered of a file that was trained on.

use std::fs::File;
use std::path::Path;

use cognate::model::provenance::TrainingFile;
use cognate_files::ReadError;

use crate::TrainError;

/// The name of a file without its folder, and the digest of its bytes.
pub fn trained_on(path: &Path) -> Result<TrainingFile, TrainError> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(TrainingFile { name, digest: digest(path)? })
}

fn digest(path: &Path) -> Result<String, TrainError> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let mut hasher = blake3::Hasher::new();
    let metadata = path.metadata().map_err(failed)?;
    if metadata.is_file() {
        hasher.update_reader(File::open(path).map_err(failed)?).map_err(failed)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}
