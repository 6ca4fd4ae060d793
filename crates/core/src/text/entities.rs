//! HTML entities as tweets and feeds have them: the named ones that occur and all numeric ones.
//! The closing semicolon is required, so a cut-off `&am` stays what it is.

/// The longest entity in bytes, from `&` to `;`.
pub(super) const ENTITY_BYTES: usize = 10;

/// The named entities and their characters.
pub const NAMED: &[(&str, char)] = &[
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", '\u{A0}'),
    ("hellip", '…'),
    ("mdash", '—'),
    ("ndash", '–'),
    ("lsquo", '‘'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
    ("laquo", '«'),
    ("raquo", '»'),
    ("bull", '•'),
    ("middot", '·'),
    ("copy", '©'),
    ("reg", '®'),
    ("trade", '™'),
    ("deg", '°'),
    ("euro", '€'),
    ("pound", '£'),
    ("cent", '¢'),
    ("yen", '¥'),
    ("eacute", 'é'),
    ("egrave", 'è'),
    ("ntilde", 'ñ'),
    ("auml", 'ä'),
    ("ouml", 'ö'),
    ("uuml", 'ü'),
    ("szlig", 'ß'),
];

/// The character of an entity at the beginning of `text`, and the entity's length.
pub(super) fn entity(text: &str) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    let window = &bytes[..bytes.len().min(ENTITY_BYTES)];
    let end = window.iter().position(|&byte| byte == b';')?;
    let name = text.get(1..end)?;
    let c = match name.strip_prefix('#') {
        Some(number) => numeric(number)?,
        None => NAMED.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((c, end + 1))
}

fn numeric(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(hexadecimal) => (hexadecimal, 16),
        None => (number, 10),
    };
    // `from_str_radix` would also take a sign.
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u32::from_str_radix(digits, radix).ok().filter(|_| plain).and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_and_numeric_entities_are_read_and_anything_else_is_left() {
        assert_eq!(entity("&amp; rest"), Some(('&', 5)));
        assert_eq!(entity("&#39;s"), Some(('\'', 5)));
        assert_eq!(entity("&#x27;"), Some(('\'', 6)));
        assert_eq!(entity("&#x1F600;"), Some(('😀', 9)));
        for text in ["&", "&;", "&am", "&amp", "&AMP;", "&#;", "&#x;", "&#+9;", "&#xD800;", "&é;"]
        {
            assert_eq!(entity(text), None, "{text}");
        }
        assert!(NAMED.iter().all(|(name, _)| name.len() + 2 <= ENTITY_BYTES));
    }
}
