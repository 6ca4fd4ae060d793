//! An explanation on a terminal: texts coloured by their words' shares of the score, and the
//! cosines between their words as shaded cells. Whether colours reach the terminal is not known
//! here.

use std::fmt::Write;

use anstyle::{Ansi256Color, Style};
use cognate::engine::{ExplainedWord, Explanation};
use unicode_width::UnicodeWidthStr;

use crate::cli::ask::on_a_line;

const MAX_COLUMNS: usize = 96;
const NAME_COLUMNS: usize = 16;
const CELL_COLUMNS: usize = 8;
/// Backgrounds for positive shares, the smallest first; black text is readable on all of them.
const GAINS: [u8; 4] = [194, 157, 120, 77];
const LOSSES: [u8; 4] = [224, 217, 210, 203];
const HEAT: [u8; 5] = [250, 109, 73, 37, 30];
const SHADES: [&str; 5] = ["  ", "░░", "▒▒", "▓▓", "██"];
const BLACK: u8 = 16;

/// Returns the text with a background for each word, by the word's share relative to `most`.
pub(super) fn painted(text: &str, words: &[ExplainedWord], most: f32) -> String {
    let (mut told, mut told_to) = (String::new(), 0);
    // The words of one token stay together.
    for parts in words.chunk_by(|one, next| one.span == next.span) {
        let [from, to] = parts.first().map_or([0, 0], |word| word.span.map(|at| at as usize));
        let from = from.max(told_to);
        let (Some(before), Some(word)) = (text.get(told_to..from), text.get(from..to)) else {
            continue;
        };
        let style = of_share(parts.iter().filter_map(|part| part.share).sum(), most);
        // Writing to a string cannot fail.
        let _ = write!(told, "{}{style}{}{style:#}", on_a_line(before), on_a_line(word));
        told_to = to;
    }
    told + &on_a_line(text.get(told_to..).unwrap_or_default())
}

/// The largest share of any word, by absolute value.
pub(super) fn largest_share(explained: &Explanation) -> f32 {
    let words = explained.one.iter().chain(&explained.other);
    words.filter_map(|word| word.share).map(f32::abs).fold(0.0, f32::max)
}

/// Returns the style for a share, if the largest share is `most`.
pub(super) fn of_share(share: f32, most: f32) -> Style {
    let steps = if share < 0.0 { LOSSES } else { GAINS };
    if most == 0.0 || share.abs() < 0.05 * most {
        return Style::new();
    }
    let part = share.abs() / most;
    let step = ((part * steps.len() as f32) as usize).min(steps.len() - 1);
    let background = Ansi256Color(steps[step]).into();
    Style::new().fg_color(Some(Ansi256Color(BLACK).into())).bg_color(Some(background))
}

/// The cosines between the words: a row per word of A, a column per word of B.
pub(super) fn map(explained: &Explanation) -> String {
    let mut told = String::new();
    if explained.one.is_empty() || explained.other.is_empty() {
        return told;
    }
    let name = |word: &ExplainedWord| shortened(&on_a_line(&word.token));
    let rows: Vec<String> = explained.one.iter().map(name).collect();
    let columns: Vec<String> = explained.other.iter().map(name).collect();
    let stub = rows.iter().map(|name| name.width()).max().unwrap_or_default() + 2;
    told.push_str("\nCosines, a row a word of A, a column a word of B\n");
    let mut first = 0;
    while first < columns.len() {
        let mut room = MAX_COLUMNS.saturating_sub(stub);
        let fits = |name: &&String| {
            let needed = width_of(name);
            let fits = needed <= room;
            room = room.saturating_sub(needed);
            fits
        };
        let count = columns.iter().skip(first).take_while(fits).count().max(1);
        let shown = columns.get(first..first + count).unwrap_or_default();
        let head: String = shown.iter().map(|name| padded(name, width_of(name))).collect();
        let _ = writeln!(told, "{:stub$}{}", "", head.trim_end());
        for (row, cosines) in rows.iter().zip(&explained.cosines) {
            let cosines = cosines.iter().skip(first);
            let cells: String = shown
                .iter()
                .zip(cosines)
                .map(|(name, &cosine)| cell(cosine, width_of(name)))
                .collect();
            let _ = writeln!(told, "{}{}", padded(row, stub), cells.trim_end());
        }
        first += count;
        if first < columns.len() {
            told.push('\n');
        }
    }
    told
}

/// Columns for a word of B, including the gap to the next.
fn width_of(name: &str) -> usize {
    name.width().max(CELL_COLUMNS) + 2
}

fn cell(cosine: f32, columns: usize) -> String {
    let step = ((cosine.max(0.0) * SHADES.len() as f32) as usize).min(SHADES.len() - 1);
    let style = match step {
        0 => Style::new(),
        step => Style::new().fg_color(Some(Ansi256Color(HEAT[step]).into())),
    };
    // A cosine that rounds to zero has no sign.
    let cosine = if cosine.abs() < 0.005 { 0.0 } else { cosine };
    let number = format!("{cosine:>5.2}");
    let rest = columns.saturating_sub(3 + number.len());
    format!("{style}{}{style:#} {number}{:rest$}", SHADES[step], "")
}

fn padded(name: &str, columns: usize) -> String {
    let rest = columns.saturating_sub(name.width());
    format!("{name}{:rest$}", "")
}

/// A name cut to the columns that it may have.
fn shortened(name: &str) -> String {
    if name.width() <= NAME_COLUMNS {
        return name.to_owned();
    }
    let mut kept = String::new();
    for character in name.chars() {
        kept.push(character);
        if kept.width() > NAME_COLUMNS - 1 {
            kept.pop();
            break;
        }
    }
    kept + "…"
}
