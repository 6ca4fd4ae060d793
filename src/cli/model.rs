//! The model file of a command: given as for `cognate serve`, so that one environment variable
//! serves all commands, or found in a usual place.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::http::NamedModel;
use crate::http::registry::models::EMBEDDED;

const FILE: &str = "default.safetensors";
const FOLDER: &str = "models";

pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) place: &'static str,
}

/// Finds the model of a command without one, in a file or at last in the program; the error lists
/// the searched places and how to get a model.
pub(super) fn find(environment: &[(OsString, OsString)]) -> Result<Found, String> {
    let mut looked = String::new();
    for found in places(environment) {
        if found.path.is_file() {
            return Ok(found);
        }
        // Writing to a string cannot fail.
        let _ = write!(looked, "\n    {} ({})", found.path.display(), found.place);
    }
    if EMBEDDED.is_some() {
        return Ok(Found { path: NamedModel::EMBEDDED.into(), place: "in the program itself" });
    }
    Err(format!(
        "no model is named and none was found; looked for{looked}\n  \
         Name one: `--model FILE`, or COGNATE_MODEL=FILE. cognate's repository holds \
         {FOLDER}/{FILE}, and `cognate pack` makes a model from word vectors."
    ))
}

/// Paths where a model may be, the best first.
fn places(environment: &[(OsString, OsString)]) -> Vec<Found> {
    let program = std::env::current_exe().ok();
    let variable = |wanted: &str| {
        let given = environment.iter().find(|(name, _)| name == wanted);
        // The specification of these variables requires ignoring a relative path.
        given.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let mut places = Vec::new();
    if let Some(folder) = program.as_deref().and_then(Path::parent) {
        let place = "beside the program";
        places.push(Found { path: folder.join(FOLDER).join(FILE), place });
        places.push(Found { path: folder.join(FILE), place });
    }
    places.push(Found { path: Path::new(FOLDER).join(FILE), place: "in the current folder" });
    let data = variable("XDG_DATA_HOME");
    let data = data.or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    if let Some(folder) = data {
        let path = folder.join(crate::PROGRAM).join(FILE);
        places.push(Found { path, place: "in the user's data folder" });
    }
    places
}
