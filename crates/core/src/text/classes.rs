//! What a character can be to the tokeniser. ASCII is read from a table by the byte; everything
//! else is asked for by the character, common scripts first.

use unicode_properties::{GeneralCategoryGroup, UnicodeEmoji, UnicodeGeneralCategory};

/// The class of a byte, which decides the scanner's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Byte {
    /// White space and controls.
    Gap,
    Letter,
    Digit,
    Apostrophe,
    Hash,
    At,
    /// Any other printable ASCII.
    Mark,
    /// Part of a character outside ASCII.
    Wide,
}

pub(super) static BYTES: [Byte; 256] = bytes();

const fn bytes() -> [Byte; 256] {
    let mut table = [Byte::Wide; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Byte::Letter,
            b'0'..=b'9' => Byte::Digit,
            b'\'' => Byte::Apostrophe,
            b'#' => Byte::Hash,
            b'@' => Byte::At,
            0..=b' ' | 0x7F => Byte::Gap,
            _ => Byte::Mark,
        };
        byte += 1;
    }
    table
}

#[cfg(test)]
std::thread_local! {
    /// Characters and bytes that this thread has looked at, each as often as it was.
    pub(super) static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts characters or bytes that a rule looks at, for the law that a text takes linear work. Every loop of
/// the tokeniser counts its steps by this or by asking for a class.
#[inline]
pub(super) fn looked(_count: usize) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + _count);
}

pub(super) fn byte_class(byte: u8) -> Byte {
    looked(1);
    BYTES[usize::from(byte)]
}

/// The class of a character outside ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wide {
    Letter,
    Digit,
    /// A combining mark: it continues a word and begins none.
    Accent,
    Emoji,
    /// Punctuation, or a symbol that is no emoji.
    Mark,
    /// Everything else: spaces, controls, joiners.
    Gap,
}

pub(super) fn wide_class(c: char) -> Wide {
    looked(1);
    match c {
        '×' | '÷' => Wide::Mark,
        // Latin, Cyrillic, kana, Han and Hangul: not worth a search in the table of categories.
        '\u{C0}'..='\u{24F}'
        | '\u{400}'..='\u{481}'
        | '\u{3041}'..='\u{3096}'
        | '\u{30A1}'..='\u{30FA}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7A3}' => Wide::Letter,
        '\u{2010}'..='\u{2027}' => Wide::Mark,
        // The keycap closes an emoji or means nothing; in a word it would hide the digit.
        '\u{20E3}' => Wide::Gap,
        _ => match c.general_category_group() {
            GeneralCategoryGroup::Letter => Wide::Letter,
            GeneralCategoryGroup::Number => Wide::Digit,
            // Variation selectors are marks by category and joiners by use.
            GeneralCategoryGroup::Mark if is_ignorable(c) => Wide::Gap,
            GeneralCategoryGroup::Mark => Wide::Accent,
            GeneralCategoryGroup::Symbol if c.is_emoji_char() => Wide::Emoji,
            GeneralCategoryGroup::Symbol | GeneralCategoryGroup::Punctuation => Wide::Mark,
            GeneralCategoryGroup::Separator | GeneralCategoryGroup::Other => Wide::Gap,
        },
    }
}

pub(super) fn is_emoji(c: char) -> bool {
    !c.is_ascii() && wide_class(c) == Wide::Emoji
}

/// Whether a character can be inside an emoji cluster although it is ignorable elsewhere: the
/// zero-width joiner, the emoji variation selector and the tag characters of regional flags.
pub(super) fn is_emoji_joiner(c: char) -> bool {
    matches!(c, '\u{200D}' | '\u{FE0F}' | '\u{E0020}'..='\u{E007F}')
}

/// Unicode's Default_Ignorable_Code_Point: characters that are not meant to be seen.
pub(super) fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{AD}'
            | '\u{34F}'
            | '\u{61C}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFF8}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Whether a character is a Han ideograph, by the blocks that BERT's tokeniser names.
pub(super) fn is_han(c: char) -> bool {
    matches!(
        c,
        '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{2CEAF}'
            | '\u{2F800}'..='\u{2FA1F}'
    )
}

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
    looked(end);
    end
}

/// Returns the number of bytes of the keycap (`1️⃣`) at the start of `text`, whose first character is ASCII.
pub(super) fn keycap(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(|c| matches!(c, '0'..='9' | '#' | '*'))?;
    let rest = rest.strip_prefix(VS16).unwrap_or(rest).strip_prefix(KEYCAP)?;
    Some(text.len() - rest.len())
}

fn is_regional(c: char) -> bool {
    matches!(c, '\u{1F1E6}'..='\u{1F1FF}')
}

/// A character that may follow an emoji without a joiner: a variation, a skin tone, a tag of a region.
fn is_modifier(c: char) -> bool {
    matches!(c, VS16 | '\u{1F3FB}'..='\u{1F3FF}' | '\u{E0020}'..='\u{E007F}')
}
