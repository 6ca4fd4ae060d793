//! Emoji clusters: where one ends. What is an emoji is `classes`' business, and what it means
//! is nobody's here.

use super::classes::is_emoji;

/// A cluster is cut after this many code points; the longest in use have ten.
const CLUSTER: usize = 16;

const ZWJ: char = '\u{200D}';
const VS16: char = '\u{FE0F}';
const KEYCAP: char = '\u{20E3}';

/// The bytes of the emoji cluster that begins `text` with `first`.
pub(super) fn cluster(text: &str, first: char) -> usize {
    let mut chars = text.char_indices().take(CLUSTER).skip(1).peekable();
    if is_regional(first) {
        return match chars.next() {
            Some((at, c)) if is_regional(c) => at + c.len_utf8(),
            _ => first.len_utf8(),
        };
    }
    let mut end = first.len_utf8();
    while let Some((at, c)) = chars.next() {
        if is_modifier(c) {
            end = at + c.len_utf8();
        } else if c == ZWJ
            && let Some((at, c)) = chars.next_if(|&(_, c)| is_emoji(c))
        {
            end = at + c.len_utf8();
        } else {
            break;
        }
    }
    end
}

/// The bytes of the keycap (`1️⃣`) that begins `text`, whose first character is ASCII.
pub(super) fn keycap(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(|c| matches!(c, '0'..='9' | '#' | '*'))?;
    let rest = rest.strip_prefix(VS16).unwrap_or(rest).strip_prefix(KEYCAP)?;
    Some(text.len() - rest.len())
}

fn is_regional(c: char) -> bool {
    matches!(c, '\u{1F1E6}'..='\u{1F1FF}')
}

/// What may follow an emoji without a joiner: its variation, a skin tone, tags of a region.
fn is_modifier(c: char) -> bool {
    matches!(c, VS16 | '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0020}'..='\u{E007F}')
}
