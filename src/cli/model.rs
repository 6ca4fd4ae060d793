//! The model file that a command works on: given as `cognate serve` takes its models, so that one
//! variable of the environment serves all commands, or found where one is usually kept.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::http::NamedModel;
use crate::http::registry::models::EMBEDDED;

/// The name of the file that is looked for.
const FILE: &str = "default.safetensors";
/// The folder that it may lie in, as in the repository.
const FOLDER: &str = "models";

/// A model file that was found, and where in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) place: &'static str,
}

/// Finds the model of a command that nothing names one for, in a file or at last in the program, or says where it was looked for and how
/// to get one.
pub(super) fn find(environment: &[(OsString, OsString)]) -> Result<Found, String> {
    let program = std::env::current_exe().ok();
    let places = places(program.as_deref(), environment);
    first_there(places).or_else(|none| match EMBEDDED {
        Some(_) => Ok(Found { path: NamedModel::EMBEDDED.into(), place: "in the program itself" }),
        None => Err(none),
    })
}

/// Where a model may lie, the best place first.
fn places(program: Option<&Path>, environment: &[(OsString, OsString)]) -> Vec<Found> {
    let variable = |wanted: &str| {
        let given = environment.iter().find(|(name, _)| name == wanted);
        // A relative path is to be ignored, says the specification of these variables.
        given.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let mut places = Vec::new();
    if let Some(folder) = program.and_then(Path::parent) {
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

fn first_there(places: Vec<Found>) -> Result<Found, String> {
    let mut looked = String::new();
    for found in places {
        if found.path.is_file() {
            return Ok(found);
        }
        // Writing to a string cannot fail.
        let _ = write!(looked, "\n    {} ({})", found.path.display(), found.place);
    }
    Err(format!(
        "no model is named and none was found; looked for{looked}\n  \
         Name one: `--model FILE`, or COGNATE_MODEL=FILE. cognate's repository holds \
         {FOLDER}/{FILE}, and `cognate pack` makes a model from word vectors."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(given: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        given.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn paths(program: Option<&str>, given: &[(&str, &str)]) -> Vec<String> {
        let places = places(program.map(Path::new), &variables(given));
        places.iter().map(|found| found.path.display().to_string()).collect()
    }

    #[test]
    fn places_follow_each_other_from_near_to_far() {
        let home = [("HOME", "/home/ada")];
        assert_eq!(
            paths(Some("/opt/bin/cognate"), &home),
            [
                "/opt/bin/models/default.safetensors",
                "/opt/bin/default.safetensors",
                "models/default.safetensors",
                "/home/ada/.local/share/cognate/default.safetensors",
            ]
        );
        let data = [("HOME", "/home/ada"), ("XDG_DATA_HOME", "/data")];
        let last = |given: &[(&str, &str)]| paths(None, given).pop().unwrap();
        assert_eq!(last(&data), "/data/cognate/default.safetensors");
        for relative in ["", "data"] {
            let given = [("XDG_DATA_HOME", relative), ("HOME", "/home/ada")];
            assert_eq!(last(&given), "/home/ada/.local/share/cognate/default.safetensors");
        }
        assert_eq!(paths(None, &[]), ["models/default.safetensors"]);
    }

    #[test]
    fn the_first_file_that_is_there_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("a")).unwrap();
        std::fs::write(at("c"), "").unwrap();
        let places = |names: &[&str]| {
            names.iter().map(|name| Found { path: at(name), place: "here" }).collect::<Vec<_>>()
        };
        let found = first_there(places(&["a", "b", "c", "d"])).unwrap();
        assert_eq!(found.path, at("c"));
        let none = first_there(places(&["a", "b"])).unwrap_err();
        for name in ["a", "b"] {
            assert!(none.contains(&format!("{} (here)", at(name).display())), "{none}");
        }
        assert!(none.contains("--model FILE") && none.contains("models/default.safetensors"));
    }
}
