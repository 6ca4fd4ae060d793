//! The URL of a database, whose password is never shown.

use std::fmt;

use crate::http::settings::rule::{RawValue, Rule};
use crate::http::settings::value::Value;

/// What stands in a password's place.
const HIDDEN: &str = "***";

/// The URL of a PostgreSQL database.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The URL with its password.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    fn shown(&self) -> String {
        shown(&self.0)
    }
}

/// A URL without what is secret: a password stands before the host or among the settings.
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
        f.write_str(&self.shown())
    }
}

impl Value for DatabaseUrl {
    fn parse(written: &RawValue, rule: &Rule) -> Result<Self, String> {
        let url = String::parse(written, rule)?;
        match url.starts_with("postgres://") || url.starts_with("postgresql://") {
            true => Ok(Self(url)),
            // It may hold a password, so it is not repeated.
            false => Err("is not a URL such as postgres://user:password@host/database".to_owned()),
        }
    }

    fn write(&self, _: &Rule) -> RawValue {
        RawValue::One(self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (written, shown) in [
            ("postgres://host/db", "postgres://host/db"),
            ("postgres://me@host:5432/db", "postgres://me@host:5432/db"),
            ("postgresql://me:s3:c@ret@host/db?x=1", "postgresql://me:***@host/db?x=1"),
            ("postgres:///db?password=secret&host=/run", "postgres:///db?password=***&host=/run"),
        ] {
            let url = DatabaseUrl::parse(&RawValue::One(written.to_owned()), &Rule::text("URL"));
            let url = url.unwrap();
            assert_eq!((url.secret(), &*format!("{url:?}")), (written, shown));
        }
        let wrong = DatabaseUrl::parse(&RawValue::One("secret@host".into()), &Rule::text("URL"));
        assert!(!wrong.unwrap_err().contains("secret"));
    }
}
