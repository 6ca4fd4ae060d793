//! The settings in force as TOML: what can be saved as the settings file and gives the same again.

use std::fmt::Write;

use crate::http::settings::value::RawValue;
use crate::http::settings::{LIST, Loaded, Origin};

impl Loaded {
    /// Every setting, a line each, with where its value comes from. There are no secrets among
    /// them: keys lie in a file of their own, and a database's password is left out.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for setting in LIST {
            let value = self::toml(&setting.read(&self.settings));
            let origin = self.origin(setting.key);
            let layer = match origin {
                Origin::Default | Origin::Found(_) => "",
                Origin::File { .. } => "file ",
                Origin::Environment(_) => "environment ",
                Origin::Flag(_) => "flag ",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} = {value}  # {layer}{origin}", setting.key);
        }
        text
    }
}

/// A value as TOML has it.
pub(super) fn toml(value: &RawValue) -> String {
    match value {
        RawValue::One(text) => single(text),
        RawValue::Many(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
            format!("[{}]", texts.join(", "))
        }
    }
}

/// A number or a truth value bare, all else quoted.
fn single(text: &str) -> String {
    let number = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    if number || text == "true" || text == "false" { text.to_owned() } else { string(text) }
}

/// A basic string of TOML.
fn string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(character));
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_survive() {
        for text in ["", "a\"b\\c", "a\nb\u{7f}\u{85}é", "007", "-1", "true"] {
            let toml = format!("key = {}", single(text));
            let table: toml::Table = toml.parse().unwrap();
            let back = match &table["key"] {
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(value) => value.to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!(back, text);
        }
    }
}
