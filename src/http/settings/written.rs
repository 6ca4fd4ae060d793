//! Settings written as TOML: those in force, which as a settings file give the same again, and a
//! template file with every key, its help and its default.

use std::fmt::Write;

use serde_json::Value;

use crate::http::settings::value::RawValue;
use crate::http::settings::{LIST, Loaded, Origin, Settings};

impl Loaded {
    /// Every setting, a line each, with where its value comes from. There are no secrets among
    /// them: keys are in a file of their own, and a database's password is left out.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        for setting in LIST {
            let value = toml(&(setting.read)(&self.settings));
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

fn toml(value: &RawValue) -> String {
    match value {
        RawValue::One(text) => single(text),
        RawValue::Many(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
            format!("[{}]", texts.join(", "))
        }
    }
}

fn single(text: &str) -> String {
    let number = text.parse::<i64>().is_ok_and(|number| number.to_string() == text);
    if number || text == "true" || text == "false" { text.to_owned() } else { string(text) }
}

/// A string of JSON is also a string of TOML, except for DEL.
fn string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

const WIDTH: usize = 100;
const HEAD: &str = "\
# Settings of `cognate serve`. Copy this file to cognate.toml, in the folder where the service starts,
# or name it with --config. Every setting is shown with its default: remove the # before a key to
# change it. A flag (--max-pairs) and a variable (COGNATE_MAX_PAIRS) win over this file; a variable of the
# name with _FILE (COGNATE_POSTGRES_FILE) names a file that has the value, for what is secret.
# `cognate serve --check` prints the settings in force and where each comes from.
";
/// Models come last: a TOML table extends to the end of the file.
const MODELS: &str = "
# Several models by name, the first of them the default: instead of `model`, and at the end of the
# file.
#[models]
#news = \"models/news.safetensors\"
#tweets = \"models/tweets.safetensors\"
";

pub fn example() -> String {
    let settings = Settings::default();
    let mut text = HEAD.to_owned();
    let mut section = "";
    for setting in LIST {
        if setting.section != section {
            section = setting.section;
            // Writing to a string cannot fail.
            let _ = write!(text, "\n\n##### {section} #####\n");
        }
        let range = setting.rule.range().map(|range| format!(" Allowed: {range}."));
        let help = format!("{}{}", setting.help.trim(), range.unwrap_or_default());
        let value = toml(&(setting.read)(&settings));
        let _ = write!(text, "\n{}#{} = {value}\n", comment(&help), setting.key);
    }
    text + MODELS
}

fn comment(text: &str) -> String {
    let (mut lines, mut length) = (String::from("#"), 1);
    for word in text.split_whitespace() {
        if length + 1 + word.len() > WIDTH {
            lines.push_str("\n#");
            length = 1;
        }
        lines.extend([" ", word]);
        length += 1 + word.len();
    }
    lines + "\n"
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
