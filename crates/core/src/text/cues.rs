//! Marks that say more than a mark: tags that are already in the text, smileys, hearts, repeats.
//! The words of the tags are those of GloVe's Twitter vectors.

use super::classes::looked;
use super::normalisation::Cues;
use super::scan::Scanner;
use super::tokens::Kind;

/// Every tag that any rule can write.
const TAGS: [&str; 12] = [
    "<url>",
    "<user>",
    "<number>",
    "<hashtag>",
    "<elong>",
    "<allcaps>",
    "<smile>",
    "<sadface>",
    "<lolface>",
    "<neutralface>",
    "<heart>",
    "<repeat>",
];

impl Scanner<'_> {
    /// Handles an ASCII mark and the token that it may begin.
    pub(super) fn mark(&mut self, at: usize) -> usize {
        if self.bytes[at] == b'<'
            && self.rules.writes_tags()
            && let Some(tag) = TAGS.iter().find(|tag| self.stands_at(at, tag))
        {
            return self.tag(tag, at, at + tag.len());
        }
        if self.rules.cues == Cues::Tag
            && let Some(end) = self.cue(at)
        {
            return end;
        }
        self.punctuation(at, at + 1);
        at + 1
    }

    fn cue(&mut self, at: usize) -> Option<usize> {
        match self.bytes[at] {
            b'<' if self.bytes.get(at + 1) == Some(&b'3') => {
                let end = self.run_end(at + 1, b"3");
                (!self.begins_word(end)).then(|| self.tag("<heart>", at, end))
            }
            b'!' | b'?' | b'.' => {
                let end = self.run_end(at, b"!?.");
                (end - at >= 2).then(|| {
                    self.punctuation(end - 1, end);
                    self.tag("<repeat>", end - 1, end)
                })
            }
            b':' | b'=' | b';' => self.smiley(at),
            _ => None,
        }
    }

    /// Returns the end of a smiley: eyes, perhaps a nose, and one or more mouths. After a mouth that is a
    /// letter the word must end, or `=day` would be a smiley.
    fn smiley(&mut self, at: usize) -> Option<usize> {
        let nose = matches!(self.bytes.get(at + 1), Some(b'\'' | b'`' | b'-'));
        let mouth = at + 1 + usize::from(nose);
        let (tag, shapes): (_, &[u8]) = match self.bytes.get(mouth)? {
            b')' | b'd' | b'D' => ("<smile>", b")dD"),
            b'(' => ("<sadface>", b"("),
            b'p' | b'P' => ("<lolface>", b"pP"),
            b'/' | b'|' | b'*' => ("<neutralface>", b"/|*"),
            _ => return None,
        };
        let end = self.run_end(mouth, shapes);
        if self.bytes[end - 1].is_ascii_alphabetic() && self.word_end(end - 1) > end {
            return None;
        }
        Some(self.tag(tag, at, end))
    }

    fn tag(&mut self, tag: &str, at: usize, end: usize) -> usize {
        let span = self.span(at, end);
        self.tokens.push_text(tag, span, Kind::Tag);
        end
    }

    fn stands_at(&self, at: usize, tag: &str) -> bool {
        let text = self.bytes.get(at..at + tag.len());
        text.is_some_and(|text| text.eq_ignore_ascii_case(tag.as_bytes()))
    }

    /// The end of the run of `shapes` that continues at `at`.
    fn run_end(&self, at: usize, shapes: &[u8]) -> usize {
        let run = self.bytes[at..].iter().take_while(|byte| shapes.contains(byte)).count();
        looked(run);
        at + run
    }
}
