//! The settings as a file to begin with: every key with its help and its default, commented out.

use std::fmt::Write;

use crate::http::settings::{LIST, Settings, effective};

const WIDTH: usize = 100;
/// What stands before the settings.
const HEAD: &str = "\
# Settings of `cognate serve`. Copy this file to cognate.toml, in the folder where the service starts,
# or name it with --config. Every setting is shown with its default: remove the # before a key to
# change it. A flag (--max-pairs) and a variable (COGNATE_MAX_PAIRS) win over this file.
# `cognate serve --check` prints the settings in force and where each comes from.
";
/// What stands behind them: a table goes on to the end of a file.
const MODELS: &str = "
# Several models by name, the first of them the default: instead of `model`, and at the end of the
# file.
#[models]
#news = \"models/news.safetensors\"
#tweets = \"models/tweets.safetensors\"
";

/// The text of `cognate.toml.example`.
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
        let value = effective::toml(&setting.read(&settings));
        let _ = write!(text, "\n{}#{} = {value}\n", comment(&help), setting.key);
    }
    text + MODELS
}

/// A text as lines of a comment.
fn comment(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    lines + &line + "\n"
}
