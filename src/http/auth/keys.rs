//! API keys: a file of their digests, and the owner of a request's `Authorization`. Which routes
//! require which scope is not known here.
//!
//! The file has a key per line, `id:scope:blake3-hex`, or `id:scope:blake3-hex:collections` for a
//! key that is limited to some collections, `#` comments and blank lines. Only digests of keys are
//! stored, and a presented key is hashed before it is compared, so that neither the file nor the
//! time of an answer reveals a key.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, io};

use cognate::model::IoCause;
use cognate_collections::{NAME_BYTES, check_name};

use crate::http::observe::series::named;

pub const FILE_BYTES: u64 = 1 << 20;
pub const MAX_KEYS: usize = 10_000;
pub const HEADER_BYTES: usize = 512;
pub(crate) const ID_BYTES: usize = 64;
/// Most ids in a line of the log, which bounds its length.
const MAX_IDS_LOGGED: usize = 100;

named! {
    /// Each includes those before it.
    #[derive(PartialOrd)]
    pub enum Scope {
        Query = "query",
        /// Questions, and writing to collections.
        Collection = "collection",
        /// Questions, writing to collections, and steering the service.
        Admin = "admin",
    }
}

impl Scope {
    /// Whether a key of this scope includes the rights of `wanted`.
    pub fn includes(self, wanted: Self) -> bool {
        self >= wanted
    }
}

impl FromStr for Scope {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|scope| scope.name() == text);
        found.copied().ok_or("the scope is none of query, collection and admin")
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone)]
pub struct Key {
    pub index: usize,
    pub id: String,
    pub scope: Scope,
    /// The collections that it is limited to; `None` for all.
    pub collections: Option<CollectionNames>,
    digest: [u8; 32],
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} {}:{})", self.index, self.id, self.scope)
    }
}

/// Why a keys file cannot be used. No message repeats the file's text.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("cannot read {}: {}", path.display(), IoCause(source))]
    Io { path: PathBuf, source: io::Error },
    /// The path is a folder, a pipe or a device.
    #[error("{} is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    /// The file is too large or has no key.
    #[error("{}: {problem}", path.display())]
    Whole { path: PathBuf, problem: String },
    #[error("{}:{line}: {problem}", path.display())]
    Line { path: PathBuf, line: usize, problem: String },
}

#[derive(Debug, Clone)]
pub struct Keys {
    keys: Vec<Key>,
    places: HashMap<[u8; 32], usize>,
}

impl Keys {
    /// Reads a keys file. A file that every user of the machine can read is used, with a warning.
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        let io = |source| KeysError::Io { path: path.to_owned(), source };
        // Otherwise opening a pipe without a writer would block.
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
        let options = File::options().read(true).custom_flags(flags.bits() as i32).clone();
        let file = options.open(path).map_err(io)?;
        let found = file.metadata().map_err(io)?;
        if !found.is_file() {
            return Err(KeysError::NotAFile { path: path.to_owned() });
        }
        if found.permissions().mode() & 0o004 != 0 {
            tracing::warn!(path = %path.display(), "everybody on this machine can read the keys file");
        }
        let mut text = Vec::new();
        file.take(FILE_BYTES + 1).read_to_end(&mut text).map_err(io)?;
        let whole =
            |problem: &str| KeysError::Whole { path: path.to_owned(), problem: problem.to_owned() };
        if text.len() as u64 > FILE_BYTES {
            return Err(whole(&format!("has more than {FILE_BYTES} bytes")));
        }
        Self::parse(&String::from_utf8(text).map_err(|_| whole("is not UTF-8"))?, path)
    }

    pub fn parse(text: &str, path: &Path) -> Result<Self, KeysError> {
        let mut keys: Vec<Key> = Vec::new();
        let (mut ids, mut places) = (HashSet::new(), HashMap::new());
        for (number, line) in text.lines().enumerate() {
            let wrong = |problem: &str| KeysError::Line {
                path: path.to_owned(),
                line: number + 1,
                problem: problem.to_owned(),
            };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let index = keys.len();
            let key = key(index, line).map_err(|problem| wrong(&problem))?;
            if !ids.insert(key.id.clone()) {
                return Err(wrong("the id is taken by a line above"));
            }
            if places.insert(key.digest, index).is_some() {
                return Err(wrong("the key is that of a line above"));
            }
            if index == MAX_KEYS {
                return Err(wrong(&format!("there are more than {MAX_KEYS} keys")));
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(KeysError::Whole {
                path: path.to_owned(),
                problem: "has no key, so nobody could be let in; `cognate keygen` makes one"
                    .to_owned(),
            });
        }
        Ok(Self { keys, places })
    }

    /// For each key, its index among the keys of `before`, if it is one of them.
    pub fn places_in(&self, before: &Self) -> Vec<Option<usize>> {
        self.keys.iter().map(|key| before.places.get(&key.digest).copied()).collect()
    }

    /// Whether this key is among them with the same rights.
    pub(crate) fn include(&self, key: &Key) -> bool {
        self.find(key).is_some()
    }

    /// The ids of the keys that are not among `others` with the same id and rights, separated by
    /// commas; `None` if there are none. Of very many the first are named and the rest are counted.
    pub(crate) fn ids_not_in(&self, others: &Self) -> Option<String> {
        let is_there = |key: &&Key| others.find(key).is_some_and(|other| other.id == key.id);
        let ids = self.keys.iter().filter(|key| !is_there(key)).map(|key| key.id.as_str());
        let mut ids: Vec<&str> = ids.collect();
        let rest = ids.split_off(ids.len().min(MAX_IDS_LOGGED)).len();
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        (!ids.is_empty()).then(|| ids.join(",") + &more)
    }

    /// The key of this digest, if it has the same rights.
    fn find(&self, key: &Key) -> Option<&Key> {
        let found = self.keys.get(*self.places.get(&key.digest)?)?;
        let same_names = match (&found.collections, &key.collections) {
            (Some(found), Some(other)) => found.are(other),
            (found, other) => found.is_none() && other.is_none(),
        };
        (found.scope == key.scope && same_names).then_some(found)
    }

    pub fn all(&self) -> &[Key] {
        &self.keys
    }

    /// The key in an `Authorization`: `Bearer KEY`, or the bare key.
    ///
    /// The digest of the presented key is looked up. The time of the lookup may reveal something of
    /// the digests, but they are those of random keys and lead to none. A request without a key is
    /// treated as one with a wrong key.
    pub fn check(&self, authorization: Option<&[u8]>) -> Option<&Key> {
        let header = authorization.filter(|header| header.len() <= HEADER_BYTES);
        let presented = blake3::hash(header.map(bare).unwrap_or_default());
        let key = self.keys.get(*self.places.get(presented.as_bytes())?)?;
        // An empty header presents no key. `blake3::Hash` compares in constant time.
        (header.is_some() && presented == key.digest).then_some(key)
    }
}

fn bare(header: &[u8]) -> &[u8] {
    let header = header.trim_ascii();
    match header.split_at_checked(6) {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case(b"bearer") && key.starts_with(b" ") => {
            key.trim_ascii()
        }
        _ => header,
    }
}

/// Reads the key of a line; `index` is the key's index among all keys.
fn key(index: usize, line: &str) -> Result<Key, String> {
    let mut fields = line.split(':');
    let (Some(id), Some(scope), Some(digest), names, None) =
        (fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err("it is not id:scope:blake3-hex, or that with :collections".to_owned());
    };
    check_id(id)?;
    let digest =
        blake3::Hash::from_hex(digest).map_err(|_| "the digest is not 64 hex digits".to_owned())?;
    let (scope, collections) = (scope.parse::<Scope>()?, names.map(str::parse).transpose()?);
    Ok(Key { index, id: id.to_owned(), scope, collections, digest: *digest.as_bytes() })
}

fn check_id(id: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !id.is_empty() && id.len() <= ID_BYTES && id.bytes().all(plain) {
        return Ok(());
    }
    Err(format!("the id is not 1 to {ID_BYTES} of A-Z, a-z, 0-9, `.`, `_` and `-`"))
}

/// A line for the file that admits a key to every collection.
pub fn line(id: &str, scope: Scope, key: &str) -> Result<String, String> {
    check_id(id)?;
    Ok(format!("{id}:{scope}:{}", blake3::hash(key.as_bytes()).to_hex()))
}

pub const MAX_NAMES: usize = 100;
/// A pattern that ends with this character matches every name that starts with the rest of the pattern.
const ANY: &str = "*";

/// Names of collections, and beginnings of names: `news,shop-*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionNames(Vec<String>);

impl CollectionNames {
    /// Whether both have the same names, in any order.
    fn are(&self, other: &Self) -> bool {
        let within = |one: &Self, other: &Self| one.0.iter().all(|name| other.0.contains(name));
        within(self, other) && within(other, self)
    }

    pub fn include(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix(ANY) {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        })
    }
}

impl FromStr for CollectionNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let patterns: Vec<String> = text.split(',').map(str::to_owned).collect();
        for pattern in &patterns {
            if *pattern == ANY {
                return Err("`*` alone is every collection, as without the field".to_owned());
            }
            // The beginning of a name follows the rules of names.
            check_name(pattern.strip_suffix(ANY).unwrap_or(pattern)).map_err(|_| {
                format!(
                    "the collections are not names, or beginnings of names with `*`, with commas \
                     between them: at most {NAME_BYTES} of a-z, 0-9, `.`, `_` and `-`, the first a \
                     letter or digit"
                )
            })?;
        }
        match patterns.len() <= MAX_NAMES {
            true => Ok(Self(patterns)),
            false => Err(format!("a key names at most {MAX_NAMES} collections")),
        }
    }
}

impl fmt::Display for CollectionNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_beginnings_are_told_apart() {
        let names: CollectionNames = "news,shop-*,a.b".parse().unwrap();
        assert_eq!(names.to_string(), "news,shop-*,a.b");
        for reached in ["news", "shop-", "shop-1", "shop-eu.old", "a.b"] {
            assert!(names.include(reached), "{reached}");
        }
        for other in ["", "new", "news2", "newsx", "shop", "shop_1", "a-b", "ashop-1", "SHOP-1"] {
            assert!(!names.include(other), "{other}");
        }
    }

    #[test]
    fn what_names_no_collection_is_refused() {
        let long = "x".repeat(NAME_BYTES);
        assert!(long.parse::<CollectionNames>().is_ok());
        let many = vec!["a"; MAX_NAMES].join(",");
        assert!(many.parse::<CollectionNames>().is_ok());
        let wrong = [
            "",
            "*",
            ",",
            "news,",
            "news, shop",
            "News",
            "a*b",
            "a**",
            "*a",
            "-a*",
            "a/b",
            "ü",
            &format!("{long}x"),
            &format!("{many},a"),
        ];
        for wrong in wrong {
            assert!(wrong.parse::<CollectionNames>().is_err(), "{wrong}");
        }
    }
}
