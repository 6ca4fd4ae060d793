//! Merges the layers of settings: a flag overrides the environment, the environment the file, the file
//! the default. Knows the layer of each value, and reports the problems of all layers at once.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use strsim::osa_distance;

use crate::http::settings::value::{RawValue, VARIABLES, quoted};
use crate::http::settings::{LIST, NamedModel, Setting, Settings, file};

/// Suffix of a variable that names a file with the value, as in images of databases: for passwords,
/// since variables are visible to anyone who inspects a container.
const IN_FILE: &str = "_FILE";
/// Most bytes of such a file, and of the settings file.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The variable that names the settings file, and so is not a setting.
pub const FILE_VARIABLE: &str = "COGNATE_CONFIG";

#[derive(Debug, Clone)]
pub struct SettingsFile {
    pub name: String,
    pub text: String,
}

#[derive(Debug, Clone, Default)]
pub struct Layers {
    pub file: Option<SettingsFile>,
    /// The environment; other programs' variables are ignored.
    pub environment: Vec<(OsString, OsString)>,
    /// Flags without their dashes, with the values given.
    pub flags: Vec<(String, Vec<String>)>,
    /// Flags that are not settings, suggested for misspelt flags.
    pub other_flags: &'static [&'static str],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File {
        name: String,
        /// The line, from 1.
        line: usize,
    },
    Environment(String),
    Flag(String),
    /// No layer sets it; a file was found there.
    Found(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::File { name, line } => write!(f, "{}:{line}", name.escape_debug()),
            Self::Environment(name) => write!(f, "{}", name.escape_debug()),
            Self::Flag(name) => write!(f, "--{}", name.escape_debug()),
            Self::Found(place) => write!(f, "found {place}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting, if one can be told.
    pub key: Option<&'static str>,
    pub origin: Origin,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.origin, self.key) {
            (Origin::Default, Some(key)) => write!(f, "{key} (default): {}", self.what),
            (Origin::Default, None) => write!(f, "{}", self.what),
            (origin @ Origin::File { .. }, Some(key)) => {
                write!(f, "{origin}: {key}: {}", self.what)
            }
            (origin, _) => write!(f, "{origin}: {}", self.what),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings; a value with a problem leaves that of the layer below.
    pub settings: Settings,
    pub problems: Vec<Problem>,
    /// Findings of a check that are no problems, a line each.
    pub notes: Vec<String>,
    origins: Vec<Origin>,
    pub(super) unread: bool,
}

impl Loaded {
    pub fn read(layers: &Layers) -> Self {
        let mut loaded = Self {
            settings: Settings::default(),
            problems: Vec::new(),
            notes: Vec::new(),
            origins: vec![Origin::Default; LIST.len()],
            unread: false,
        };
        if let Some(file) = &layers.file {
            loaded.read_file(file);
        }
        loaded.read_environment(&layers.environment);
        for (flag, values) in &layers.flags {
            loaded.read_flag(flag, values, layers.other_flags);
        }
        loaded
    }

    pub fn origin(&self, key: &str) -> &Origin {
        let place = LIST.iter().position(|setting| setting.key == key);
        place.and_then(|place| self.origins.get(place)).unwrap_or(&Origin::Default)
    }

    pub(super) fn wrong(&mut self, key: &'static str, what: String) {
        let origin = self.origin(key).clone();
        self.problems.push(Problem { key: Some(key), origin, what });
    }

    pub fn note_unread(&mut self, what: String) {
        self.unread = true;
        self.problems.push(Problem { key: None, origin: Origin::Default, what });
    }

    /// Whether no layer names a model, so that one may be searched for.
    pub fn names_no_model(&self) -> bool {
        let misnamed = self.problems.iter().any(|problem| problem.key == Some("model"));
        !self.unread && !misnamed && *self.origin("model") == Origin::Default
    }

    pub fn take_found_model(&mut self, path: PathBuf, place: &'static str) {
        self.settings.model = vec![NamedModel { name: NamedModel::UNNAMED.to_owned(), path }];
        if let Some(at) = find(|setting| setting.key == "model") {
            self.origins[at] = Origin::Found(place);
        }
    }

    pub fn note_no_model(&mut self, what: String) {
        // Otherwise a wrong path would be reported twice.
        self.settings.model.clear();
        self.problems.push(Problem { key: None, origin: Origin::Default, what });
    }

    fn read_file(&mut self, file: &SettingsFile) {
        let read = file::entries(&file.text);
        let origin = |line| Origin::File { name: file.name.clone(), line };
        for (line, what) in read.broken {
            self.unread = true;
            self.problems.push(Problem { key: None, origin: origin(line), what });
        }
        let both = |key| read.entries.iter().any(|entry| entry.key == key);
        if both("model") && both(file::MODELS) {
            let what = "model and [models] are two ways of saying the same: keep one".to_owned();
            self.problems.push(Problem { key: None, origin: origin(1), what });
        }
        for entry in read.entries {
            let key = if entry.key == file::MODELS { "model" } else { &entry.key };
            match find(|setting| setting.key == key) {
                Some(place) => self.put(place, origin(entry.line), entry.written),
                None => {
                    let known = LIST.iter().map(|setting| setting.key.to_owned());
                    self.unknown(origin(entry.line), &entry.key, known);
                }
            }
        }
    }

    fn read_environment(&mut self, variables: &[(OsString, OsString)]) {
        let mut ours: Vec<_> = variables
            .iter()
            .map(|(name, value)| (name.to_string_lossy(), value))
            .filter(|(name, _)| name.starts_with(VARIABLES) && name != FILE_VARIABLE)
            .collect();
        ours.sort();
        for (name, value) in &ours {
            let origin = Origin::Environment(name.to_string());
            let named = |name: &str| find(|setting| setting.variable() == name);
            let in_file = name.strip_suffix(IN_FILE).filter(|_| named(name).is_none());
            let Some(place) = named(in_file.unwrap_or(name)) else {
                let known = LIST.iter().map(Setting::variable);
                let known = known.flat_map(|name| [format!("{name}{IN_FILE}"), name]);
                self.unknown(origin, name, known);
                continue;
            };
            let text = value.to_str().ok_or_else(|| "is not UTF-8".to_owned());
            let text = match in_file {
                Some(short) if ours.iter().any(|(other, _)| other == short) => {
                    Err(format!("{short} says the same setting: keep one"))
                }
                Some(_) => text.and_then(content),
                None => text.map(str::to_owned),
            };
            let list = LIST[place].rule.is_list();
            let written = text.map(|text| match list {
                true => RawValue::Many(text.split(',').map(str::to_owned).collect()),
                false => RawValue::One(text),
            });
            self.put(place, origin, written);
        }
    }

    fn read_flag(&mut self, flag: &str, values: &[String], others: &[&str]) {
        let origin = Origin::Flag(flag.to_owned());
        let Some(place) = find(|setting| setting.flag() == flag) else {
            let settings = LIST.iter().map(Setting::flag);
            let known = settings.chain(others.iter().map(|&other| other.to_owned()));
            let known = known.map(|flag| format!("--{flag}"));
            return self.unknown(origin, &format!("--{flag}"), known);
        };
        let written = match values {
            _ if LIST[place].rule.is_list() => Ok(RawValue::Many(values.to_vec())),
            [value] => Ok(RawValue::One(value.clone())),
            values => Err(format!("is given {} times", values.len())),
        };
        self.put(place, origin, written);
    }

    fn put(&mut self, place: usize, origin: Origin, written: Result<RawValue, String>) {
        let setting = &LIST[place];
        match written.and_then(|written| (setting.write)(&mut self.settings, &written)) {
            Ok(()) => self.origins[place] = origin,
            Err(what) => self.problems.push(Problem { key: Some(setting.key), origin, what }),
        }
    }

    fn unknown(&mut self, origin: Origin, said: &str, known: impl Iterator<Item = String>) {
        // The message names other layers.
        let what = match origin {
            Origin::File { .. } => format!("{} is no setting", quoted(said)),
            _ => "no such setting".to_owned(),
        };
        let what = match nearest(said, known) {
            Some(nearest) => format!("{what}; did you mean {nearest}?"),
            None => format!("{what}; `cognate serve --help` lists them"),
        };
        self.problems.push(Problem { key: None, origin, what });
    }
}

/// The known name nearest to a misspelt one, if it is near: a letter in three may be wrong,
/// missing, too many or swapped with the next.
pub fn nearest(said: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let plain = |name: &str| {
        let name = name.trim_start_matches('-').to_lowercase().replace('-', "_");
        name.trim_start_matches(&VARIABLES.to_lowercase()).to_owned()
    };
    // Long misspelt keys are shortened in messages.
    let short: String = said.chars().take(64).collect();
    let said = plain(&short);
    let known = known.map(|known| (osa_distance(&said, &plain(&known)), known));
    let (distance, nearest) = known.min_by_key(|&(distance, _)| distance)?;
    (distance * 3 <= said.chars().count().max(3)).then_some(nearest)
}

pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 1 MiB"));
    }
    Ok(text)
}

/// The value in a file, without the end of its line.
fn content(path: &str) -> Result<String, String> {
    let text = read_text(Path::new(path));
    let text = text.map_err(|error| format!("cannot read {}: {error}", quoted(path)))?;
    Ok(text.trim_end().to_owned())
}

fn find(is: impl Fn(&Setting) -> bool) -> Option<usize> {
    LIST.iter().position(is)
}
