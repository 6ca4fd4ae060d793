//! The types that settings have: read from what is written, and written back.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use cognate::model::{Storage, Verify};

use crate::http::dialect::{Dialect, StandIn};
use crate::http::observe::request_log::LoggedRequests;
use crate::http::settings::Damaged;

/// A model file and the name by which requests choose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedModel {
    pub name: String,
    pub path: PathBuf,
}

impl NamedModel {
    pub(crate) const UNNAMED: &str = "default";

    /// Stands for the model within the program, in builds with the feature `embed-model`. A file of
    /// this name is `./embedded:`.
    pub const EMBEDDED: &str = "embedded:";

    pub fn is_embedded(&self) -> bool {
        self.path.as_os_str() == Self::EMBEDDED
    }

    /// The first model of a variable's list, in which another name would follow.
    pub fn first(list: &str) -> Result<Self, String> {
        let mut commas = list.match_indices(',').map(|(at, _)| at);
        let end = commas.find(|&at| split(&list[at + 1..]).0.is_some()).unwrap_or(list.len());
        Self::parse(&list[..end])
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (name, path) = split(text);
        let name = name.unwrap_or(Self::UNNAMED);
        if name.is_empty() || path.is_empty() {
            return Err(format!(
                "{} is not a file, or a name and a file such as \
                 default=models/default.safetensors",
                quoted(text)
            ));
        }
        Ok(Self { name: name.to_owned(), path: PathBuf::from(path) })
    }
}

/// Splits at the first `=`. Names have no slash, so a path may have `=`.
fn split(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, path)) if !name.contains('/') => (Some(name.trim()), path.trim()),
        _ => (None, text.trim()),
    }
}

pub(super) trait Value: Sized {
    fn parse(written: &RawValue, rule: &Rule) -> Result<Self, String>;

    /// Writes the value in the form that reads back as the same value.
    fn write(&self, rule: &Rule) -> RawValue;
}

/// A text in a message: short, and without characters that could control a terminal.
pub(super) fn quoted(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("`{}{more}`", short.escape_debug())
}

fn one(written: &RawValue) -> Result<&str, String> {
    match written {
        RawValue::One(text) => Ok(text.trim()),
        RawValue::Many(_) => Err("takes one value, not a list".to_owned()),
    }
}

fn many(written: &RawValue) -> &[String] {
    match written {
        RawValue::One(text) => std::slice::from_ref(text),
        RawValue::Many(texts) => texts,
    }
}

/// A whole number; `_` between digits is ignored.
fn whole(text: &str) -> Option<u64> {
    let plain = text.replace('_', "");
    let digits = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_digit());
    if digits { plain.parse().ok() } else { None }
}

fn bytes(text: &str) -> Option<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return None,
    };
    whole(number.trim_end())?.checked_mul(factor)
}

fn number(text: &str, rule: &Rule) -> Result<u64, String> {
    let (read, least, most, form) = match rule.shape {
        ValueShape::Bytes(least, most) => {
            (bytes(text), least, most, "a size in bytes, or with KiB, MiB or GiB")
        }
        ValueShape::Count(least, most) => (whole(text), least, most, "a whole number"),
        _ => (whole(text), 0, u64::MAX, "a whole number"),
    };
    let range = rule.range().unwrap_or_default();
    match read {
        Some(value) if (least..=most).contains(&value) => Ok(value),
        Some(_) => Err(format!("{} is out of range: {range}", quoted(text))),
        None => Err(format!("{} is not {form}: {range}", quoted(text))),
    }
}

macro_rules! numbers {
    ($($kind:ty),+) => {$(
        impl Value for $kind {
            fn parse(written: &RawValue, rule: &Rule) -> Result<Self, String> {
                let value = number(one(written)?, rule)?;
                value.try_into().map_err(|_| format!("{value} does not fit this machine"))
            }

            fn write(&self, rule: &Rule) -> RawValue {
                RawValue::One(match rule.shape {
                    ValueShape::Bytes(..) => crate::http::settings::value::size(*self as u64),
                    _ => self.to_string(),
                })
            }
        }
    )+};
}

numbers!(usize, u32, u64);

macro_rules! plain {
    ($($kind:ty: $what:literal;)+) => {$(
        impl Value for $kind {
            fn parse(written: &RawValue, _: &Rule) -> Result<Self, String> {
                let text = one(written)?;
                text.parse().map_err(|_| format!("{} is {}", quoted(text), $what))
            }

            fn write(&self, _: &Rule) -> RawValue {
                RawValue::One(self.to_string())
            }
        }
    )+};
}

plain! {
    bool: "neither true nor false";
    SocketAddr: "not an address and a port, such as 127.0.0.1:8080 or [::1]:8080";
}

impl Value for String {
    fn parse(written: &RawValue, _: &Rule) -> Result<Self, String> {
        match one(written)? {
            "" => Err("is empty".to_owned()),
            text => Ok(text.to_owned()),
        }
    }

    fn write(&self, _: &Rule) -> RawValue {
        RawValue::One(self.clone())
    }
}

impl Value for PathBuf {
    fn parse(written: &RawValue, rule: &Rule) -> Result<Self, String> {
        String::parse(written, rule).map(Self::from)
    }

    fn write(&self, _: &Rule) -> RawValue {
        RawValue::One(self.to_string_lossy().into_owned())
    }
}

/// Settings that are one of a few words.
macro_rules! words {
    ($($type:ident { $($variant:ident = $word:literal),+ })+) => {$(
        impl Value for $type {
            fn parse(written: &RawValue, rule: &Rule) -> Result<Self, String> {
                match one(written)? {
                    $($word => Ok(Self::$variant),)+
                    other => {
                        let words = rule.range().unwrap_or_default();
                        Err(format!("{} is not {words}", quoted(other)))
                    }
                }
            }

            fn write(&self, _: &Rule) -> RawValue {
                RawValue::One(match self { $(Self::$variant => $word),+ }.to_owned())
            }
        }
    )+};
}

words! {
    Verify { Full = "full", Structure = "structure" }
    Storage { Map = "map", Copy = "copy" }
    StandIn { Auto = "auto", Zero = "zero", Hash = "hash", Error = "error" }
    Damaged { Refuse = "refuse", ServeOthers = "serve-others" }
    LoggedRequests { All = "all", Refused = "refused", None = "none" }
}

impl Value for Vec<Dialect> {
    fn parse(written: &RawValue, _: &Rule) -> Result<Self, String> {
        let names = many(written).iter().flat_map(|names| names.split(','));
        let names: Vec<&str> = names.map(str::trim).collect();
        match names.as_slice() {
            ["all"] => return Ok(Dialect::others().collect()),
            ["none"] => return Ok(Vec::new()),
            _ => {}
        }
        let named = |name: &str| {
            Dialect::others().find(|dialect| dialect.name() == name).ok_or_else(|| {
                let known: Vec<&str> = Dialect::others().map(Dialect::name).collect();
                format!(
                    "{} is no dialect: expected {}, or `all` or `none` alone",
                    quoted(name),
                    known.join(", ")
                )
            })
        };
        names.into_iter().filter(|name| !name.is_empty()).map(named).collect()
    }

    fn write(&self, _: &Rule) -> RawValue {
        RawValue::Many(match self.len() {
            0 => vec!["none".to_owned()],
            all if all == Dialect::others().count() => vec!["all".to_owned()],
            _ => self.iter().map(|dialect| dialect.name().to_owned()).collect(),
        })
    }
}

impl<T: Value> Value for Option<T> {
    fn parse(written: &RawValue, rule: &Rule) -> Result<Self, String> {
        match written {
            RawValue::One(text) if text.trim().is_empty() => Ok(None),
            RawValue::One(text) if Some(text.trim()) == rule.unset => Ok(None),
            written => T::parse(written, rule).map(Some),
        }
    }

    fn write(&self, rule: &Rule) -> RawValue {
        match self {
            Some(value) => value.write(rule),
            None => RawValue::One(rule.unset.unwrap_or_default().to_owned()),
        }
    }
}

impl Value for Vec<String> {
    fn parse(written: &RawValue, _: &Rule) -> Result<Self, String> {
        let given = many(written).iter().map(|text| text.trim().to_owned());
        Ok(given.filter(|text| !text.is_empty()).collect())
    }

    fn write(&self, _: &Rule) -> RawValue {
        RawValue::Many(self.clone())
    }
}

impl Value for Vec<NamedModel> {
    fn parse(written: &RawValue, _: &Rule) -> Result<Self, String> {
        let models = many(written).iter().enumerate().map(|(place, text)| {
            if place > 0 && split(text).0.is_none() {
                let (text, name) = (quoted(text.trim()), NamedModel::UNNAMED);
                return Err(format!("{text} has no name; only the first may lack one, `{name}`"));
            }
            NamedModel::parse(text)
        });
        let models = models.collect::<Result<Self, String>>()?;
        if models.is_empty() {
            return Err("names no model".to_owned());
        }
        Ok(models)
    }

    fn write(&self, _: &Rule) -> RawValue {
        let texts = self.iter().map(|model| format!("{}={}", model.name, model.path.display()));
        RawValue::Many(texts.collect())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawValue {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueShape {
    Count(u64, u64),
    /// A size in bytes, optionally with a unit; the range includes both ends.
    Bytes(u64, u64),
    Choice(&'static [&'static str]),
    Switch,
    Text(&'static str),
    /// Any number of values of the form that this names.
    List(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    pub shape: ValueShape,
    /// The word for no value, if that is allowed.
    pub unset: Option<&'static str>,
}

impl Rule {
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.shape, ValueShape::List(_))
    }

    /// The allowed values in words; `None` if the form says it all.
    pub fn range(&self) -> Option<String> {
        match self.shape {
            ValueShape::Count(least, most) => Some(format!("{least} to {most}")),
            ValueShape::Bytes(least, most) => Some(format!("{} to {}", size(least), size(most))),
            ValueShape::Choice(words) => Some(words.join(" or ")),
            ValueShape::Switch => Some("true or false".to_owned()),
            ValueShape::Text(_) | ValueShape::List(_) => None,
        }
    }
}

/// A size in the largest unit that divides it.
pub(super) fn size(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fits = |&(shift, _): &(u32, &str)| bytes > 0 && bytes.trailing_zeros() >= shift;
    match units.into_iter().find(fits) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}

pub(super) const VARIABLES: &str = "COGNATE_";

const HIDDEN: &str = "***";

#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

/// A URL without secrets: a password may be before the host or among the parameters.
fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (place, settings) = rest.split_once('?').unwrap_or((rest, ""));
    let place = match place.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:{HIDDEN}@{host}"),
            None => format!("{user}@{host}"),
        },
        None => place.to_owned(),
    };
    let hidden = |setting: &str| match setting.split_once('=') {
        Some((name @ "password", _)) => format!("{name}={HIDDEN}"),
        _ => setting.to_owned(),
    };
    let settings: Vec<String> = settings.split('&').map(hidden).collect();
    let settings = settings.join("&");
    let mark = if settings.is_empty() { "" } else { "?" };
    format!("{scheme}://{place}{mark}{settings}")
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl Value for DatabaseUrl {
    fn parse(written: &RawValue, rule: &Rule) -> Result<Self, String> {
        let url = String::parse(written, rule)?;
        match url.starts_with("postgres://") || url.starts_with("postgresql://") {
            true => Ok(Self(url)),
            // The value may hold a password, so it is not repeated.
            false => Err("is not a URL such as postgres://user:password@host/database".to_owned()),
        }
    }

    fn write(&self, _: &Rule) -> RawValue {
        RawValue::One(shown(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let table = [
            ("8388608", Some(8 << 20)),
            ("8MiB", Some(8 << 20)),
            ("8 MiB", Some(8 << 20)),
            ("8192kib", Some(8 << 20)),
            ("8_388_608 B", Some(8 << 20)),
            ("2TiB", Some(2 << 40)),
            ("8MB", None),
            ("8M", None),
            ("MiB", None),
            ("1.5MiB", None),
            ("-8MiB", None),
            ("+8", None),
            ("17179869184GiB", None),
        ];
        for (text, expected) in table {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn a_quoted_text_is_short_and_harmless() {
        assert_eq!(quoted("a\u{1b}[2Jb"), "`a\\u{1b}[2Jb`");
        assert!(quoted(&"x".repeat(1000)).len() < 80);
    }
}

#[cfg(test)]
mod database_tests {
    use super::*;

    const RULE: Rule = Rule { shape: ValueShape::Text("URL"), unset: None };

    #[test]
    fn no_password_is_shown() {
        for (written, shown) in [
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://me@host:5432/db", "postgres://me@host:5432/db"),
            ("postgresql://me:s3:c@ret@host/db?x=1", "postgresql://me:***@host/db?x=1"),
            ("postgres:///db?password=secret&host=/run", "postgres:///db?password=***&host=/run"),
        ] {
            let url = DatabaseUrl::parse(&RawValue::One(written.to_owned()), &RULE);
            let url = url.unwrap();
            assert_eq!((url.secret(), &*format!("{url:?}")), (written, shown));
        }
        let wrong = DatabaseUrl::parse(&RawValue::One("secret@host".into()), &RULE);
        assert!(!wrong.unwrap_err().contains("secret"));
    }
}
