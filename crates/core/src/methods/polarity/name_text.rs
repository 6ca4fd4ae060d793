//! What a text says of names: which of its tokens may be some, by what the model knows of the words
//! and by how the text writes them. What that means beside another text is not known here.

use std::cell::{Cell, Ref, RefCell};

use crate::methods::polarity::name_list::{Bits, Class, Code, List, Listed, flag};
use crate::model::vocabulary::EMPTY;
use crate::model::{Phrase, WordId};

/// Most tokens of a text that is looked at, so that a bit of a number stands for each.
pub(super) const MAX: usize = 48;

/// How far a word in small letters is from a name, in a text that has capitals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) enum Weak {
    No,
    /// The word is hardly seen.
    Unseen,
    Small,
}

#[derive(Debug)]
pub(super) struct Token {
    /// The length of the name's text in bytes, and its first byte. If it is shorter than the token,
    /// the token names an owner.
    pub(super) length: u32,
    pub(super) initial: u8,
    /// A key that tells the token apart from other tokens.
    pub(super) key: u64,
    pub(super) id: Option<WordId>,
    /// The row of the token, or of its stem.
    pub(super) row: Option<WordId>,
    /// The number of what the lines say of it.
    pub(super) known: u32,
    flags: u8,
    pub(super) is_of_a_country: bool,
    pub(super) kinds: u8,
    pub(super) class: Class,
    a_word: bool,
    pub(super) weak: Weak,
    pub(super) is_capital: bool,
    /// Whether the token is `US`.
    of_capitals: bool,
    /// The token begins a sentence, so that its capital says nothing.
    pub(super) first: bool,
    /// Nothing but a space, a hyphen or a full stop stands before it.
    pub(super) joins: bool,
    /// Whether the token comes from a hashtag.
    pub(super) tag: bool,
    /// The token makes one name with the token before it, which is no name by itself.
    pub(super) joined: bool,
    /// A colon stands behind it: a text of this speaker.
    byline: bool,
    pub(super) group: Option<[u16; 2]>,
    pub(super) code: Option<Code>,
}

impl Token {
    pub(super) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn is_named(&self) -> bool {
        self.class != Class::No || self.group.is_some() || self.code.is_some()
    }

    pub(super) fn is_common(&self) -> bool {
        self.class == Class::No && self.kinds == 0 && self.id.is_some()
    }

    /// Whether it may be a name by itself.
    pub(super) fn may_be(&self) -> bool {
        matches!(self.class, Class::Name | Class::Maybe | Class::Rare) && self.weak == Weak::No
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        self.key == other.key
    }

    /// The token's text, in the phrase that it was read from.
    pub(super) fn text<'p>(&self, phrase: &'p Phrase<'_>, place: usize) -> &'p str {
        phrase.tokens().text(place).get(..self.length as usize).unwrap_or_default()
    }

    /// Decides the token's class by the way it is written in its text.
    fn settle(
        &mut self,
        (list, phrase, place): (&List, &Phrase<'_>, usize),
        (cased, mixed, shouted): (bool, bool, bool),
        dated: bool,
        last: bool,
    ) {
        let inside = self.is_capital && !self.first;
        let written = inside && mixed;
        let small = cased && !self.is_capital;
        if self.is(flag::DOUBTFUL) && !inside && !dated {
            self.group = None;
        }
        if self.length == 1 && matches!(self.initial, b'a' | b'i') && !written && !last {
            self.code = None;
        }
        let or = |written_so: Class, else_so: Class| if written { written_so } else { else_so };
        let class = self.class;
        self.class = if self.joined {
            Class::Name
        } else if !self.a_word || self.is(flag::NONE) {
            Class::No
        } else if self.id.is_none() {
            let of_stem = self.row.filter(|_| !written).map(|row| list.class(row));
            let [.., forms] = &list.endings;
            let is_form = || {
                let text = self.text(phrase, place);
                forms.iter().any(|form| text.ends_with(&**form))
            };
            match of_stem {
                Some(Class::Name) => Class::Name,
                Some(Class::Rare) => Class::Rare,
                Some(_) => Class::No,
                None => or(
                    Class::Name,
                    if self.is_capital || !is_form() { Class::Rare } else { Class::No },
                ),
            }
        } else {
            match class {
                Class::Name if small && !self.is_of_a_country && self.group.is_none() => {
                    Class::Rare
                }
                Class::Name => Class::Name,
                Class::Maybe => or(Class::Name, Class::Maybe),
                Class::Rare => or(Class::Name, Class::Rare),
                Class::Some if small => Class::No,
                Class::Some => or(Class::Maybe, Class::Some),
                Class::No if self.of_capitals && !shouted => Class::Name,
                Class::No => or(Class::Maybe, Class::No),
            }
        };
        if small && self.id.is_some() && matches!(class, Class::Name | Class::Maybe) {
            self.weak = if self.class == Class::Name { Weak::No } else { Weak::Small };
        } else if small && self.class == Class::Rare {
            self.weak = Weak::Unseen;
        }
        let also = self.is(flag::ALSO) && self.id.is_some() && !small;
        if also && self.class == Class::No {
            self.class = Class::Some;
        }
    }
}

/// A text as this rule reads it.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) tokens: Vec<Token>,
    cased: bool,
    pub(super) is_ascii: bool,
}

impl Text {
    fn read(&mut self, list: &List, phrase: &Phrase<'_>, capitals: u64) {
        let (tokens, source) = (phrase.tokens(), phrase.tokens().source());
        let (mut end, mut shown, mut words) = (0, 0, 0);
        let ids = phrase.token_ids().zip(phrase.token_keys());
        // Capitals say nothing where every noun has one; unlisted are compounds mostly.
        let nouns = if list.writes_nouns(phrase.token_ids()) { capitals } else { 0 };
        let capitals = if nouns == 0 { capitals } else { 0 };
        self.tokens.reserve(ids.len());
        for (place, ((id, key), (whole, span))) in
            ids.zip(tokens.texts().zip(tokens.spans())).enumerate()
        {
            let (mut text, mut id, mut key) = (whole, id, key);
            if let Some(owner) = whole.strip_suffix("'s") {
                (text, id) = (owner, phrase.model().vocabulary().lookup(owner));
                key = id.map_or_else(|| Phrase::key_of_unlisted(owner), u64::from);
            }
            let start = span.start as usize;
            let spaced = end + 1 == start && source.as_bytes().get(end) == Some(&b' ');
            let (mut first, mut joins, mut tag) = (place == 0, true, false);
            if !spaced {
                let gap = source.get(end..start).unwrap_or_default();
                tag = gap.ends_with('#')
                    || gap.is_empty() && self.tokens.last().is_some_and(|last| last.tag);
                let before = gap.trim();
                // An address or a name of a user, which are no tokens, end like a sentence.
                let ends = |c: char| c.is_alphanumeric() || ".!?:;\"“…(|-–—/_".contains(c);
                first = first || gap != "-" && before.ends_with(ends);
                joins = matches!(before, "" | "-" | ".");
                if let Some(last) = self.tokens.last_mut().filter(|_| place <= 4) {
                    last.byline = gap.starts_with(':') && !gap.starts_with("://");
                }
            }
            end = (span.end as usize).max(end);
            let is_capital = capitals >> place & 1 != 0;
            if !first && text.len() > 1 && text.starts_with(char::is_alphabetic) {
                words += 1;
                shown += u32::from(is_capital);
            }
            let Listed { class, kinds, code, a_word, number } = list.word(text, id);
            let known = list.known(number);
            let joined = list.first_of(id, text, || joins_with(phrase, place));
            let row = id.or_else(|| phrase.stem_of(place as u32));
            let a_word = a_word && (row.is_some() || nouns >> place & 1 == 0);
            if let (Some(first), Some(before)) = (joined, self.tokens.last_mut()) {
                key = Phrase::key_of_unlisted(&format!("{first} {text}"));
                (before.a_word, before.group, before.code) = (false, None, None);
            }
            self.tokens.push(Token {
                length: text.len() as u32,
                initial: text.as_bytes().first().copied().unwrap_or_default(),
                key,
                id,
                row,
                known: number,
                flags: known.flags,
                is_of_a_country: known.is_of_a_country(),
                kinds,
                class,
                a_word,
                weak: Weak::No,
                is_capital,
                of_capitals: text == "us" && tokens.capitals_in(span) == 2,
                first,
                joins,
                tag,
                joined: joined.is_some(),
                byline: false,
                group: known.group,
                code,
            });
        }
        (self.cased, self.is_ascii) = (capitals != 0, tokens.is_ascii());
        let written = (self.cased, words > 0 && 2 * shown <= words, 10 * shown > 9 * words);
        let (mut dated, last) = (false, self.tokens.len().saturating_sub(1));
        for (place, token) in self.tokens.iter_mut().enumerate() {
            token.settle((list, phrase, place), written, dated, place > 0 && place == last);
            dated = token.is(flag::WHEN);
        }
    }

    /// Whether capitals and what surrounds the words say little: in a tweet, and in small letters
    /// alone.
    pub(super) fn is_noisy(&self, source: &str) -> bool {
        let has = |byte: u8| source.as_bytes().contains(&byte);
        !self.cased || has(b'@') || has(b'#') || source.contains("http")
    }

    /// The names, codes and members of groups that another text does not have in the same form, a
    /// bit each.
    pub(super) fn own(&self, other: &Self) -> u64 {
        let is_own = |token: &Token| {
            token.is_named()
                && !token.byline
                && !other.tokens.iter().any(|other| other.equals(token))
        };
        let own = self.tokens.iter().enumerate().filter(|(_, token)| is_own(token));
        own.fold(0, |bits, (place, _)| bits | 1 << place)
    }

    /// Some names, with the tokens before them that are part of them.
    pub(super) fn whole(&self, names: u64) -> u64 {
        let joined = |place: &usize| self.tokens.get(*place).is_some_and(|token| token.joined);
        places(names).filter(joined).fold(names, |names, place| names | 1 << place >> 1)
    }
}

/// What a text says of names, read once it is asked for and kept however many others the text is
/// compared with; memory that is used again for the next text.
#[derive(Debug, Default)]
pub(super) struct TextNames {
    /// Three masks with a bit for each token: tokens that may be names (more than are), tokens with a capital,
    /// and tokens that form one name with the token before them.
    marks: Cell<Option<[u64; 3]>>,
    text: RefCell<Text>,
}

impl TextNames {
    /// Forgets the text.
    pub(super) fn clear(&mut self) {
        self.marks.set(None);
        self.text.get_mut().tokens.clear();
    }

    fn marks(&self, list: &List, phrase: &Phrase<'_>) -> [u64; 3] {
        /// Capitals that a text may have at the beginnings of sentences, where they say nothing.
        const SENTENCES: u32 = 3;
        if let Some(marks) = self.marks.get() {
            return marks;
        }
        let ids = phrase.ids();
        let (tokens, capitals) = (phrase.tokens(), phrase.tokens().capitals());
        let Some(last) = ids.len().checked_sub(1) else { return [0; 3] };
        let read = &ids[..ids.len().min(MAX)];
        let Bits { cased, uncased, ends } = list.bits(read);
        // A capital says something unless it is the first or all have one.
        let is_mixed = 2 * (capitals >> 1).count_ones() <= last as u32 + SENTENCES;
        let shown = if is_mixed { capitals & !1 } else { 0 };
        let small = if capitals == 0 { 0 } else { !capitals };
        let unlisted =
            (0..).zip(read).fold(0, |bits, (at, id)| bits | u64::from(*id == EMPTY) << at);
        let code = u64::from(read.get(last).is_some_and(|id| list.is_code(*id)));
        let listed = cased & small | uncased & !small | code << (read.len() - 1) | shown;
        let candidates = (unlisted | listed) & u64::MAX >> (64 - read.len());
        let joined = places(ends).filter(|&place| {
            let id = ids.get(place).copied();
            list.first_of(id, tokens.text(place), || joins_with(phrase, place)).is_some()
        });
        let joined = joined.fold(0, |bits, place| bits | 1 << place);
        let marks = [candidates, capitals, joined];
        self.marks.set(Some(marks));
        marks
    }

    /// Whether a text has a candidate that the other, of these names, lacks.
    pub(super) fn has_own(
        &self,
        list: &List,
        [one, other]: [&Phrase<'_>; 2],
        names: &Self,
    ) -> bool {
        let ([candidates, _, joined], [.., joined_there]) =
            (self.marks(list, one), names.marks(list, other));
        let (ids, others) = (one.ids(), other.ids());
        let has =
            |joined: u64, ids: &[WordId], id| places(joined).any(|at| ids.get(at) == Some(id));
        places(candidates).any(|place| match ids.get(place) {
            Some(id) if *id != EMPTY => {
                !others.contains(id) || has(joined, ids, id) != has(joined_there, others, id)
            }
            _ => {
                let text = one.tokens().text(place);
                let theirs = others.iter().zip(other.tokens().texts());
                !theirs.filter(|(id, _)| **id == EMPTY).any(|(_, own)| own == text)
            }
        })
    }

    /// Returns the text; reads it first if that was not done yet.
    pub(super) fn text(&self, list: &List, phrase: &Phrase<'_>) -> Ref<'_, Text> {
        if let Ok(mut text) = self.text.try_borrow_mut()
            && text.tokens.is_empty()
        {
            let [_, capitals, _] = self.marks(list, phrase);
            text.read(list, phrase, capitals);
        }
        self.text.borrow()
    }
}

/// The token before, unless punctuation other than the full stop of a letter (N. York) parts the two: it ends a
/// name.
fn joins_with<'p>(phrase: &'p Phrase<'_>, place: usize) -> Option<&'p str> {
    let (tokens, before) = (phrase.tokens(), place.checked_sub(1)?);
    let text = tokens.text(before);
    let gap = tokens.span(before)?.end as usize..tokens.span(place)?.start as usize;
    let gap = tokens.source().get(gap).unwrap_or_default().trim();
    (matches!(gap, "" | "-") || gap == "." && text.len() == 1).then_some(text)
}

pub(super) fn places(mut bits: u64) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(place)
    })
}
