//! What people write on the web: addresses, user names and hashtags. It finds their ends and
//! knows none of the sites behind them but a few shorteners, whose addresses come without a scheme.

use super::classes::{Wide, looked, wide_class};
use super::entities::ENTITY_BYTES;
use super::normalisation::{Cues, Hashtags, Mentions, Urls};
use super::scan::Scanner;
use super::spelling::is_capital;
use super::tokens::Kind;

/// Hosts whose addresses are recognised without a scheme.
pub const SHORTENERS: [&str; 12] = [
    "t.co/",
    "pic.twitter.com/",
    "bit.ly/",
    "ow.ly/",
    "goo.gl/",
    "tinyurl.com/",
    "youtu.be/",
    "fb.me/",
    "instagr.am/",
    "is.gd/",
    "buff.ly/",
    "dlvr.it/",
];

/// Marks that end a sentence or a bracket rather than an address.
const TRAILING: &[u8] = b".,!?:;)]}'*";

impl Scanner<'_> {
    /// The end of the address that the word `start..end` begins, or ends in when letters stick to
    /// its scheme (`newshttp://`). What stands before it is a word of its own.
    pub(super) fn address(&mut self, start: usize, end: usize) -> Option<usize> {
        if self.rules.urls == Urls::Text {
            return None;
        }
        let (from, host) = match self.bytes.get(end)? {
            b':' if self.bytes[end..].starts_with(b"://") => {
                let word = &self.bytes[start..end];
                let scheme = ["https", "http"].iter().find(|scheme| ends(word, scheme))?;
                (end - scheme.len(), end + 3)
            }
            b'.' if begins(&self.bytes[start..], "www.") => (start, start + 4),
            b'.' => {
                let known = |host: &&&str| begins(&self.bytes[start..], host);
                (start, start + SHORTENERS.iter().find(known)?.len())
            }
            _ => return None,
        };
        if !self.bytes.get(host)?.is_ascii_alphanumeric() {
            return None;
        }
        let stuck = self.text[start..from].trim_end_matches('\'').len();
        self.words(start..start + stuck);
        let end = self.address_end(host);
        let span = self.span(from, end);
        match self.rules.urls {
            Urls::Keep => self.plain(from, end, Kind::Url),
            Urls::Tag => self.tokens.push_text("<url>", span, Kind::Tag),
            Urls::Drop | Urls::Text => {}
        }
        Some(end)
    }

    /// Addresses are ASCII here: a character behind one without a space is usually another script.
    fn address_end(&self, host: usize) -> usize {
        let rest = &self.bytes[host..];
        let outside = |byte: &u8| !byte.is_ascii_graphic() || matches!(byte, b'<' | b'>' | b'"');
        let mut end = rest.iter().position(outside).unwrap_or(rest.len());
        looked(end);
        // A kept address with an ampersand and a semicolon near it could be read as an entity the next
        // time.
        let entity = |at: &usize| {
            rest[*at] == b'&' && rest[*at..end].iter().take(ENTITY_BYTES).any(|&byte| byte == b';')
        };
        if self.rules.urls == Urls::Keep
            && let Some(at) = (0..end).find(entity)
        {
            end = at;
        }
        // The host begins with a letter or digit, so something is left.
        while end > 1 && TRAILING.contains(&rest[end - 1]) {
            end -= 1;
        }
        host + end
    }

    /// An `@`: a user name, or a mark.
    pub(super) fn mention(&mut self, at: usize) -> usize {
        let name = at + 1;
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let end = name + self.bytes[name..].iter().take_while(is_part).count();
        looked(end - name);
        if self.rules.mentions == Mentions::Text || end == name || self.after_word(at) {
            self.punctuation(at, name);
            return name;
        }
        match self.rules.mentions {
            Mentions::Keep => self.plain(at, end, Kind::Mention),
            Mentions::Word => self.words(name..end),
            Mentions::Tag => {
                let span = self.span(at, end);
                self.tokens.push_text("<user>", span, Kind::Tag);
            }
            Mentions::Drop | Mentions::Text => {}
        }
        end
    }

    /// A `#`: hidden digits, a hashtag, or a mark.
    pub(super) fn hash(&mut self, at: usize) -> usize {
        if self.hidden_digits(at) {
            return self.word(at);
        }
        let body = at + 1;
        let after = self.text[..at].ends_with('&') || self.after_word(at);
        let end = if self.rules.hashtags == Hashtags::Text || after {
            None
        } else {
            self.hashtag_end(body)
        };
        let Some(end) = end else {
            self.punctuation(at, body);
            return body;
        };
        match self.rules.hashtags {
            Hashtags::Keep => self.plain(at, end, Kind::Hashtag),
            Hashtags::Word => self.words(body..end),
            Hashtags::Split => self.split(body, end),
            Hashtags::Tag => {
                let span = self.span(at, body);
                self.tokens.push_text("<hashtag>", span, Kind::Tag);
                if self.rules.cues == Cues::Tag && self.in_capitals(body, end) {
                    self.words(body..end);
                } else {
                    self.split(body, end);
                }
            }
            Hashtags::Drop | Hashtags::Text => {}
        }
        end
    }

    /// Returns the end of a hashtag's body; `None` if the body has no letter.
    fn hashtag_end(&self, body: usize) -> Option<usize> {
        let mut letters = false;
        let mut end = body;
        for c in self.text[body..].chars() {
            match part_of(c) {
                Some(Part::Capital | Part::Small | Part::Uncased) => letters = true,
                // A body does not begin with a mark: it would belong to the `#`.
                Some(Part::Accent) if end == body => break,
                Some(_) => {}
                None => break,
            }
            end += c.len_utf8();
        }
        letters.then_some(end)
    }

    /// Cuts a hashtag where a small letter meets a capital, where the last of several capitals
    /// begins a small word (`LAQuake`), between letters and digits, and at `_`.
    fn split(&mut self, body: usize, end: usize) {
        let mut piece = body;
        let mut before = None;
        let mut at = body;
        let text = self.text;
        let mut chars = text[body..end].chars().peekable();
        while let Some(c) = chars.next() {
            let part = part_of(c).unwrap_or(Part::Line);
            let small_next = chars.peek().is_some_and(|&c| part_of(c) == Some(Part::Small));
            let cuts = match (before, part) {
                (None, _) | (_, Part::Accent) => false,
                (Some(Part::Capital), Part::Capital) => small_next,
                (Some(Part::Capital), Part::Small) => false,
                (Some(before), part) => before != part,
            };
            if cuts {
                self.words(piece..at);
                piece = at;
            }
            if part != Part::Accent {
                before = Some(part);
            }
            at += c.len_utf8();
        }
        self.words(piece..end);
    }

    /// Whether a word of at least two letters is all in capitals.
    pub(super) fn in_capitals(&self, start: usize, end: usize) -> bool {
        let mut capitals = 0;
        for c in self.text[start..end].chars() {
            match part_of(c) {
                Some(Part::Capital) => capitals += 1,
                Some(Part::Accent) => {}
                None if c == '\'' => {}
                _ => return false,
            }
        }
        capitals >= 2
    }

    /// Whether a word character or `_` is right before `at`.
    fn after_word(&self, at: usize) -> bool {
        self.text[..at].chars().next_back().is_some_and(|c| part_of(c).is_some())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Capital,
    Small,
    Uncased,
    Digit,
    Accent,
    Line,
}

fn part_of(c: char) -> Option<Part> {
    looked(1);
    let letter = || {
        if is_capital(c) {
            Part::Capital
        } else if c.is_lowercase() {
            Part::Small
        } else {
            Part::Uncased
        }
    };
    match c {
        'A'..='Z' => return Some(Part::Capital),
        'a'..='z' => return Some(Part::Small),
        '0'..='9' => return Some(Part::Digit),
        '_' => return Some(Part::Line),
        '\0'..='\x7F' => return None,
        _ => {}
    }
    match wide_class(c) {
        Wide::Letter => Some(letter()),
        Wide::Digit => Some(Part::Digit),
        Wide::Accent => Some(Part::Accent),
        _ => None,
    }
}

fn begins(text: &[u8], prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
}

fn ends(word: &[u8], suffix: &str) -> bool {
    word.len().checked_sub(suffix.len()).is_some_and(|at| begins(&word[at..], suffix))
}
