//! The collections that a key is limited to, by their names or by how these begin. Which of them there
//! are is not known here.

use std::fmt;
use std::str::FromStr;

use cognate_collections::{NAME_BYTES, check_name};

/// Most names and beginnings of one key.
pub const MOST_NAMES: usize = 100;
/// How a beginning ends.
const ANY: char = '*';

/// Names of collections, and beginnings of names: `news,shop-*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionNames(Box<[Pattern]>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Name(Box<str>),
    Prefix(Box<str>),
}

impl CollectionNames {
    /// Whether a collection of this name is among them.
    pub fn include(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| match pattern {
            Pattern::Name(one) => **one == *name,
            Pattern::Prefix(prefix) => name.starts_with(&**prefix),
        })
    }
}

impl FromStr for CollectionNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let patterns: Vec<Pattern> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        match patterns.len() <= MOST_NAMES {
            true => Ok(Self(patterns.into())),
            false => Err(format!("a key names at most {MOST_NAMES} collections")),
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, is_prefix) = match text.strip_suffix(ANY) {
            Some("") => {
                return Err("`*` alone is every collection, as without the field".to_owned());
            }
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        // A beginning of a name is made as a name is.
        check_name(name).map_err(|_| {
            format!(
                "the collections are not names, or beginnings of names with `*`, with commas \
                 between them: at most {NAME_BYTES} of a-z, 0-9, `.`, `_` and `-`, the first a \
                 letter or digit"
            )
        })?;
        Ok(match is_prefix {
            true => Self::Prefix(name.into()),
            false => Self::Name(name.into()),
        })
    }
}

impl fmt::Display for CollectionNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, pattern) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            match pattern {
                Pattern::Name(name) => f.write_str(name)?,
                Pattern::Prefix(prefix) => write!(f, "{prefix}{ANY}")?,
            }
        }
        Ok(())
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
        let many = vec!["a"; MOST_NAMES].join(",");
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
