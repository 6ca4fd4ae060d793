//! Names that two texts of one template differ in: "Turkey raises rates" and "Argentina raises rates".
//!
//! A name of one text is left over where the other has no word for the same thing. Texts in which both
//! have such a name differ in one if what is left without them agrees, the more the less sure the names
//! are: by their kinds, by what stands beside them, and by how far the rest of each covers that of the
//! other (as in [`coverage`](crate::methods::sets::coverage), without discount). A name that is left out is no
//! difference. The bars were chosen on STS 2012 to 2015 and on 384 exchanged names.

use std::cell::Cell;

use cognate_kernels::vector;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::methods::polarity::name_list::{Class, Code, Known, List, Listed, flag, kind};
use crate::model::phrase::TOKEN_BYTES;
use crate::model::{Model, ModelError, Phrase, Vectors, WordId};

/// Most tokens of a text that is looked at, so that a bit of a number stands for each.
const MOST: usize = 48;
/// Texts agree too little where the longer shares less than one word in so many with the other; most texts of a ranking do.
const SHARED: usize = 5;
/// In longer texts names are left out and put in for other reasons.
const LONGEST: usize = 18;

/// From these cosines on two words name one thing: any, and two names of a kind.
const SAME: f32 = 0.72;
const SAME_KIND: f32 = 0.8;
/// From these on it is not sure whether they do: any, and places.
const NEAR: f32 = 0.7;
const NEAR_PLACES: f32 = 0.6;

/// How far the rest has to agree: beside a word that both have, for two names of a kind, for others.
const REST_BESIDE: f64 = 0.51;
const REST: f64 = 0.58;
const REST_OPEN: f64 = 0.66;
/// For members of a group beside the same word, for days and months, for words that are names at times, for
/// what nothing else speaks for.
const REST_GROUP: f64 = 0.7;
const REST_DAY: f64 = 0.75;
const REST_MONTH: f64 = 0.65;
const REST_LISTED: f64 = 0.75;
const REST_SURE: f64 = 0.85;
const REST_NOISY: f64 = 0.9;

/// The names of a model, and the rule.
pub(super) struct Names {
    list: List,
    /// The length of the row of a word that has none, unless the model says otherwise.
    unlisted: f32,
}

/// How far from a name in small letters that word is in a text that has capitals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Weak {
    No,
    /// It is hardly seen.
    Unseen,
    Small,
}

struct Token<'t> {
    text: &'t str,
    /// What tells it apart from other tokens.
    key: u64,
    id: Option<WordId>,
    /// Its row, or that of its stem.
    row: Option<WordId>,
    length: Cell<f32>,
    known: Option<&'t Known>,
    kinds: u8,
    class: Class,
    a_word: bool,
    weak: Weak,
    capitals: usize,
    /// It begins a sentence, so that its capital says nothing.
    first: bool,
    /// Nothing but a space, a hyphen or a full stop stands before it.
    joins: bool,
    /// Of a hashtag.
    tag: bool,
    /// A colon stands behind it: a text of this speaker.
    byline: bool,
    group: Option<[u16; 2]>,
    code: Option<Code>,
}

impl Token<'_> {
    fn is(&self, flag: u8) -> bool {
        self.known.is_some_and(|known| known.is(flag))
    }

    fn is_capital(&self) -> bool {
        self.capitals > 0
    }

    fn is_named(&self) -> bool {
        self.class != Class::No || self.group.is_some() || self.code.is_some()
    }

    fn is_common(&self) -> bool {
        self.class == Class::No && self.kinds == 0 && self.id.is_some()
    }

    fn is_of_a_country(&self) -> bool {
        self.known.is_some_and(Known::is_of_a_country)
    }

    /// Whether it may be a name by itself.
    fn may_be(&self) -> bool {
        matches!(self.class, Class::Name | Class::Maybe | Class::Rare) && self.weak == Weak::No
    }

    fn equals(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// A text as this rule reads it.
struct Text<'t> {
    tokens: Vec<Token<'t>>,
    source: &'t str,
    cased: bool,
}

impl Text<'_> {
    /// Whether capitals and what surrounds the words say little: in a tweet, and in small letters alone.
    fn is_noisy(&self) -> bool {
        !self.cased || self.source.contains(['@', '#']) || self.source.contains("http")
    }

    fn mentions(&self) -> usize {
        let is_name = |name: &&str| name.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        self.source.split('@').skip(1).filter(is_name).count()
    }
}

/// What is left over of two texts, a bit a token, and which token of the other names the same.
struct Left {
    left: [u64; 2],
    partners: [[Option<u8>; MOST]; 2],
}

/// Neighbouring names of a text, a bit a token: those left over, and those that the other has.
#[derive(Clone, Copy)]
struct Run {
    left: u64,
    shared: u64,
}

fn places(mut bits: u64) -> impl Iterator<Item = usize> + Clone {
    std::iter::from_fn(move || {
        let place = bits.trailing_zeros() as usize;
        bits &= bits.checked_sub(1)?;
        Some(place)
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Kinds {
    Same,
    /// One is not known, or a team beside its place or its firm.
    Open,
    Apart,
}

/// What two runs are to each other.
struct Features {
    runs: [Run; 2],
    left: bool,
    right: bool,
    /// Both texts have a word there.
    left_word: bool,
    right_word: bool,
    group: bool,
    dated: bool,
    month: bool,
    kin: bool,
    code: bool,
    cosine: Option<f32>,
    kinds: Kinds,
    day: bool,
    places: bool,
    one_place: bool,
    /// Both are known of countries, or of one group.
    known: bool,
    shared: bool,
    // Of the one run and of the other.
    strong: [bool; 2],
    maybe: [bool; 2],
    some: [bool; 2],
    listed: [bool; 2],
    unlisted: [bool; 2],
    capital: [bool; 2],
}

impl Features {
    fn fit(&self) -> f32 {
        let count = |flags: [bool; 2]| flags.iter().filter(|flag| **flag).count();
        let maybe = self.maybe == [true; 2];
        let sides = count([self.left, self.right]) + count(self.strong);
        (sides + 2 * count([self.group, maybe])) as f32 + self.cosine.unwrap_or(0.0)
    }

    fn is_possible(&self) -> bool {
        self.group || self.code || self.some == [true; 2] && self.kinds != Kinds::Apart
    }
}

/// The tokens of two texts that name what the other lacks.
pub(super) type Exchanged = [Vec<u32>; 2];

impl Names {
    pub(super) fn read(model: &Model) -> Result<Option<Self>, ModelError> {
        let unlisted = model.length_of_unlisted().unwrap_or(1.0);
        Ok(List::read(model)?.map(|list| Self { list, unlisted }))
    }

    /// The tokens of two texts that name what the other lacks, if they differ in a name.
    pub(super) fn exchanged(&self, texts: [&Phrase<'_>; 2]) -> Option<Exchanged> {
        let [one, other] = texts;
        let most = one.tokens_read().max(other.tokens_read());
        let shares = || SHARED * common(one.listed_in_bag(), other.listed_in_bag()) >= most;
        if most > MOST || !shares() || !self.has_own(one, other) || !self.has_own(other, one) {
            return None;
        }
        // The same in either order of the texts.
        if one.token_keys().gt(other.token_keys()) {
            return self.between([other, one]).map(|[other, one]| [one, other]);
        }
        self.between(texts)
    }

    /// Whether a text has a word that may be a name and that the other lacks; more may than are.
    fn has_own(&self, one: &Phrase<'_>, other: &Phrase<'_>) -> bool {
        /// Sentences in a text behind the first, whose first words have a capital that says nothing.
        const SENTENCES: u32 = 3;
        let last = one.tokens_read().saturating_sub(1);
        let capital =
            |place: usize| one.tokens().span(place).map(|at| one.tokens().capitals_in(&at));
        let capitals = (0..=last).filter(|place| capital(*place) > Some(0));
        let capitals = capitals.fold(0_u64, |bits, place| bits | 1 << place);
        let may_be_mixed = 2 * (capitals >> 1).count_ones() <= last as u32 + SENTENCES;
        one.token_ids().enumerate().any(|(place, id)| match id {
            Some(id) => {
                // A capital says something unless it is the first or all have one.
                let capital = capitals & 1 << place != 0;
                let cased = capitals != 0 && !capital;
                (capital && place > 0 && may_be_mixed
                    || self.list.is_candidate(id, cased, place == last))
                    && !other.token_ids().any(|own| own == Some(id))
            }
            None => {
                let text = one.tokens().text(place);
                !other.tokens().texts().any(|own| own == text)
            }
        })
    }

    fn text<'t>(&'t self, phrase: &'t Phrase<'_>) -> Text<'t> {
        let (tokens, vocabulary) = (phrase.tokens(), phrase.model().vocabulary());
        let source = tokens.source();
        let mut read: Vec<Token<'t>> = Vec::with_capacity(phrase.tokens_read());
        let (mut end, mut capitals, mut words) = (0, 0, 0);
        for (place, (id, key)) in phrase.token_ids().zip(phrase.token_keys()).enumerate() {
            let whole = tokens.text(place);
            let (mut text, mut id, mut key) = (whole, id, key);
            if let Some(owner) = whole.strip_suffix("'s") {
                (text, id) = (owner, vocabulary.lookup(owner));
                key = id.map_or_else(|| Phrase::key_of_unlisted(owner), u64::from);
            }
            let span = tokens.span(place).unwrap_or_default();
            let gap = source.get(end..span.start as usize).unwrap_or_default();
            end = (span.end as usize).max(end);
            let tag =
                gap.ends_with('#') || gap.is_empty() && read.last().is_some_and(|last| last.tag);
            let (mut first, mut joins) = (place == 0, true);
            if gap != " " {
                let before = gap.trim();
                // An address or a name of a user, which are no tokens, end like a sentence.
                let ends = |c: char| c.is_alphanumeric() || ".!?:;\"“…(|-–—/_".contains(c);
                first = first || gap != "-" && before.ends_with(ends);
                joins = matches!(before, "" | "-" | ".");
                if let Some(last) = read.last_mut().filter(|_| place <= 4) {
                    last.byline = gap.starts_with(':') && !gap.starts_with("://");
                }
            }
            let count = tokens.capitals_in(&span);
            if !first && text.len() > 1 && text.starts_with(char::is_alphabetic) {
                words += 1;
                capitals += usize::from(count > 0);
            }
            let Listed { class, kinds, code, a_word, known } = self.list.word(text, id);
            read.push(Token {
                text,
                key,
                id,
                row: id.or_else(|| phrase.stem_of(place as u32)),
                length: Cell::new(0.0),
                known,
                kinds,
                class,
                a_word,
                weak: Weak::No,
                capitals: count,
                first,
                joins,
                tag,
                byline: false,
                group: known.and_then(|known| known.group),
                code,
            });
        }
        let cased = read.iter().any(|token| token.is_capital());
        let mixed = words > 0 && 2 * capitals <= words;
        let shouted = 10 * capitals > 9 * words;
        for place in 0..read.len() {
            let before = place.checked_sub(1).and_then(|before| read.get(before));
            let dated = before.is_some_and(|before| before.is(flag::WHEN));
            let last = place > 0 && place + 1 == read.len();
            if let Some(token) = read.get_mut(place) {
                self.settle(token, (cased, mixed, shouted), dated, last);
            }
        }
        Text { tokens: read, source, cased }
    }

    /// Decides what a token is by how it is written in its text.
    fn settle(
        &self,
        token: &mut Token<'_>,
        (cased, mixed, shouted): (bool, bool, bool),
        dated: bool,
        last: bool,
    ) {
        let inside = token.is_capital() && !token.first;
        let written = inside && mixed;
        let small = cased && !token.is_capital();
        if token.is(flag::DOUBTFUL) && !inside && !dated {
            token.group = None;
        }
        if matches!(token.text, "a" | "i") && !written && !last {
            token.code = None;
        }
        let text = token.text;
        let or = |written_so: Class, else_so: Class| if written { written_so } else { else_so };
        let class = token.class;
        token.class = if !token.a_word || token.is(flag::NONE) {
            Class::No
        } else if token.id.is_none() {
            let of_stem = token.row.filter(|_| !written).map(|row| self.list.class(row));
            let [.., forms] = &self.list.endings;
            let is_form = || forms.iter().any(|form| text.ends_with(&**form));
            match of_stem {
                Some(Class::Name) => Class::Name,
                Some(Class::Rare) => Class::Rare,
                Some(_) => Class::No,
                None => or(
                    Class::Name,
                    if token.is_capital() || !is_form() { Class::Rare } else { Class::No },
                ),
            }
        } else {
            match class {
                Class::Name if small && !token.is_of_a_country() && token.group.is_none() => {
                    Class::Rare
                }
                Class::Name => Class::Name,
                Class::Maybe => or(Class::Name, Class::Maybe),
                Class::Rare => or(Class::Name, Class::Rare),
                Class::Some if small => Class::No,
                Class::Some => or(Class::Maybe, Class::Some),
                Class::No if text == "us" && token.capitals == 2 && !shouted => Class::Name,
                Class::No => or(Class::Maybe, Class::No),
            }
        };
        if small && token.id.is_some() && matches!(class, Class::Name | Class::Maybe) {
            token.weak = if token.class == Class::Name { Weak::No } else { Weak::Small };
        } else if small && token.class == Class::Rare {
            token.weak = Weak::Unseen;
        }
        let also = token.is(flag::ALSO) && token.id.is_some() && !small;
        if also && token.class == Class::No {
            token.class = Class::Some;
        }
    }

    fn between(&self, phrases: [&Phrase<'_>; 2]) -> Option<Exchanged> {
        let texts = phrases.map(|phrase| self.text(phrase));
        let vectors = phrases[0].model().vectors();
        let pair = Pair { names: self, vectors, texts: [&texts[0], &texts[1]] };
        let [one, other] = pair.exchanged()?;
        let tokens = |run: Run| places(run.left | run.shared).map(|place| place as u32).collect();
        Some([tokens(one), tokens(other)])
    }
}

/// Two texts that were read.
struct Pair<'t> {
    names: &'t Names,
    vectors: Vectors<'t>,
    texts: [&'t Text<'t>; 2],
}

impl Pair<'_> {
    fn exchanged(&self) -> Option<[Run; 2]> {
        let Left { left, partners } = self.left_over()?;
        let runs = [0, 1].map(|side| self.runs(side, left[side], &partners[side]));
        let free = [0, 1].map(|side: usize| -> Vec<Run> {
            let opposite = &runs[1 - side];
            // Beside a shared name that the other text has alone a name only says more: Angela Merkel.
            let says_more = |run: &&Run| {
                let of_partners = |place| self.partner(side, place, &partners[side]);
                let shared = places(run.shared).filter_map(of_partners);
                let shared = shared.fold(0_u64, |bits, place| bits | 1 << place);
                run.shared == 0 || opposite.iter().any(|other| other.shared & shared != 0)
            };
            runs[side].iter().filter(says_more).copied().collect()
        });
        let mut best: Option<Features> = None;
        for one in &free[0] {
            for other in &free[1] {
                let features = self.features([*one, *other]);
                let rank = |features: &Features| (features.is_possible(), features.fit());
                if best.as_ref().is_none_or(|best| rank(&features) > rank(best)) {
                    best = Some(features);
                }
            }
        }
        let best = best?;
        let without = free.each_ref().map(|runs| runs.iter().fold(0, |bits, run| bits | run.left));
        let extra = free[0].len() + free[1].len() - 2;
        self.differ(&best, left, extra, || self.agreement(without)).then_some(best.runs)
    }

    fn token(&self, side: usize, place: usize) -> Option<&Token<'_>> {
        self.texts[side].tokens.get(place)
    }

    /// The cosine of two tokens by their rows or those of their stems.
    fn cosine(&self, one: &Token<'_>, other: &Token<'_>) -> Option<f32> {
        let rows = [one, other].map(|token| self.vectors.row(token.row?));
        let [Some(a), Some(b)] = rows else { return None };
        Some(vector::cosine_by_lengths(a, b, self.length(one) * self.length(other)))
    }

    fn length(&self, token: &Token<'_>) -> f32 {
        if token.length.get() == 0.0 {
            let row = token.row.and_then(|row| self.vectors.row(row));
            token.length.set(row.map_or(self.names.unlisted, vector::norm));
        }
        token.length.get()
    }

    /// The names of either text for which the other has no word; `None` where one has none.
    fn left_over(&self) -> Option<Left> {
        let [one, other] = self.texts.map(|text| &text.tokens);
        let own = |tokens: &[Token<'_>], others: &[Token<'_>]| {
            let is_own = |(_, token): &(usize, &Token<'_>)| {
                token.is_named() && !token.byline && !others.iter().any(|own| own.equals(token))
            };
            let own = tokens.iter().enumerate().filter(is_own);
            own.fold(0_u64, |bits, (place, _)| bits | 1 << place)
        };
        let own = [own(one, other), own(other, one)];
        if own.contains(&0) {
            return None;
        }
        let mut partners = [[None; MOST]; 2];
        for i in places(own[0]) {
            for (j, token) in other.iter().enumerate() {
                if self.same(&one[i], token, false) {
                    partners[0][i] = Some(j as u8);
                    partners[1][j].get_or_insert(i as u8);
                }
            }
        }
        for j in places(own[1]).filter(|j| partners[1][*j].is_none()).collect::<Vec<_>>() {
            for (i, token) in one.iter().enumerate() {
                if self.same(token, &other[j], false) {
                    partners[1][j] = Some(i as u8);
                    partners[0][i].get_or_insert(j as u8);
                }
            }
        }
        for side in [0, 1] {
            let (tokens, others) = ([one, other][side], [one, other][1 - side]);
            for place in places(own[side]) {
                if partners[side][place].is_some() {
                    continue;
                }
                let written_out = initials(tokens[place].text, others)
                    .or_else(|| written_apart(tokens[place].text, others));
                if let Some(range) = written_out {
                    partners[side][place] = Some(range.start as u8);
                    range.for_each(|other| partners[1 - side][other] = Some(place as u8));
                }
            }
        }
        let left = [0, 1].map(|side| {
            let left = places(own[side]).filter(|place| partners[side][*place].is_none());
            left.fold(0_u64, |bits, place| bits | 1 << place)
        });
        (!left.contains(&0)).then_some(Left { left, partners })
    }

    /// The token of the other text that names the same as this one.
    fn partner(&self, side: usize, place: usize, partners: &[Option<u8>; MOST]) -> Option<usize> {
        let token = self.token(side, place)?;
        let stands = || self.texts[1 - side].tokens.iter().rposition(|other| other.equals(token));
        partners.get(place)?.map(usize::from).or_else(stands)
    }

    fn runs(&self, side: usize, left: u64, partners: &[Option<u8>; MOST]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut within = false;
        for (place, token) in self.texts[side].tokens.iter().enumerate() {
            let is_left = left & 1 << place != 0;
            let name =
                token.class == Class::Name || token.class == Class::Maybe && token.is_capital();
            if !name && !is_left {
                within = false;
                continue;
            }
            if !within || !token.joins {
                runs.push(Run { left: 0, shared: 0 });
            }
            within = true;
            if let Some(run) = runs.last_mut() {
                if is_left {
                    run.left |= 1 << place;
                } else if self.partner(side, place, partners).is_some() {
                    run.shared |= 1 << place;
                }
            }
        }
        runs.retain(|run| run.left != 0);
        runs
    }

    /// Whether two words name one thing; a name and a common word by their vectors only where
    /// common words are meant, too.
    fn same(&self, one: &Token<'_>, other: &Token<'_>, common: bool) -> bool {
        let [a, b] = [one.text, other.text];
        if a == b {
            return true;
        }
        // Whether they are spelt nearly alike costs the product of their lengths.
        if a.len().max(b.len()) > TOKEN_BYTES {
            return false;
        }
        if (!a.is_ascii() || !b.is_ascii()) && plain(a).iter().any(|a| plain(b).contains(a)) {
            return true;
        }
        if let (Some([group, a]), Some([same, b])) = (one.group, other.group)
            && group == same
        {
            return a == b;
        }
        if let (Some(a), Some(b)) = (one.known, other.known) {
            if meet(&a.same, &b.same) {
                return true;
            }
            if a.is_of_a_country() && b.is_of_a_country() {
                // Two countries or two towns are never one; a country, its people and its towns are.
                return meet(&a.countries, &b.countries)
                    || meet(&a.countries, &b.within)
                    || meet(&a.within, &b.countries);
            }
        }
        // XR500 is not XR600, however alike they are spelled.
        if one.code == Some(Code::Digits) && other.code == one.code {
            return false;
        }
        let (short, long) = if a.len() <= b.len() { (one, other) } else { (other, one) };
        if self.spelled_alike(short, long) {
            return true;
        }
        if one.row.is_some() && one.row == other.row {
            return true;
        }
        let is_name = |token: &Token<'_>| token.class == Class::Name;
        if !common && (is_name(one) && other.is_common() || is_name(other) && one.is_common()) {
            return false;
        }
        let Some(cosine) = self.cosine(one, other) else { return false };
        let [a, b] = [short.text, long.text];
        let begins_alike = a.as_bytes().first() == b.as_bytes().first();
        if cosine >= 0.5 && a.len() >= 6 && begins_alike && strsim::osa_distance(a, b) <= 1 {
            return true;
        }
        let named = one.class != Class::No && other.class != Class::No;
        cosine >= if named && one.kinds & other.kinds != 0 { SAME_KIND } else { SAME }
    }

    /// Whether the letters of two words say that they name one thing.
    fn spelled_alike(&self, short: &Token<'_>, long: &Token<'_>) -> bool {
        let (x, y) = (short.text, long.text);
        let [name, vowel, _] = &self.names.list.endings;
        let ends = |endings: &[Box<str>], rest: &[u8]| {
            endings.iter().any(|ending| ending.as_bytes() == rest)
        };
        let is_within = || x.len() >= 5 && y.len() >= 10 || x.len() >= 4 && (short.tag || long.tag);
        if is_within() && y.contains(x) {
            return true;
        }
        let (x, y) = (x.as_bytes(), y.as_bytes());
        if x.len() < 4 || x.first() != y.first() {
            return false;
        }
        let people = short.kinds & long.kinds & kind::PERSON != 0;
        if let Some(rest) = y.strip_prefix(x)
            && (ends(name, rest) && !people
                || matches!(rest, b"s" | b"es")
                || short.id.is_none() && !long.is(flag::NONE))
        {
            return true;
        }
        if x.len() < 5 {
            return false;
        }
        if let [stem @ .., b'a' | b'e' | b'y' | b'o'] = x
            && let Some(rest) = y.strip_prefix(stem)
            && !people
            && ends(vowel, rest)
        {
            return true;
        }
        if short.id.is_some() && long.id.is_some() {
            return false;
        }
        let most = if x.len() >= 9 { 2 } else { 1 };
        strsim::osa_distance(short.text, long.text) <= most
            || y.split_at_checked(x.len())
                .is_some_and(|(y, rest)| is_swap(x, y) && ends(name, rest))
    }

    fn features(&self, runs: [Run; 2]) -> Features {
        let [one, other] = [0, 1].map(|side: usize| {
            places(runs[side].left).filter_map(move |place| self.token(side, place))
        });
        let beside = |step: isize| {
            let [one, other] = [0, 1].map(|side: usize| {
                let left = runs[side].left;
                let edge = if step < 0 { left.trailing_zeros() } else { left.checked_ilog2()? };
                let mut place = (edge as usize).checked_add_signed(step);
                while let Some(token) = place.and_then(|place| self.token(side, place)) {
                    if !token.is(flag::ARTICLE) {
                        return Some(token);
                    }
                    place = place.and_then(|place| place.checked_add_signed(step));
                }
                None
            });
            match (one, other) {
                (None, None) => (true, false),
                (Some(a), Some(b)) => [a.equals(b) || self.same(a, b, true); 2].into(),
                _ => (false, false),
            }
        };
        let ((left, left_word), (right, right_word)) = (beside(-1), beside(1));
        let both = |is: &dyn Fn(&Token<'_>) -> bool| [one.clone().any(is), other.clone().any(is)];
        let pairs = || one.clone().flat_map(|a| other.clone().map(move |b| (a, b)));
        let mut groups = pairs().filter_map(|(a, b)| {
            Some(a.group?[0])
                .filter(|_| a.group.map(|group| group[0]) == b.group.map(|group| group[0]))
        });
        let group = groups.next();
        let named = |group: u16| self.names.list.groups.get(usize::from(group)).map(|name| &**name);
        let name = group.and_then(named).unwrap_or_default();
        let has_group = |wanted: &str| {
            one.clone().any(|token| token.group.and_then(|group| named(group[0])) == Some(wanted))
        };
        let listed = |token: &Token<'_>| token.id.is_some() && token.row.is_some();
        let cosines = pairs().filter(|(a, b)| listed(a) && listed(b));
        let cosines = cosines.filter_map(|(a, b)| self.cosine(a, b));
        let kinds = [
            one.clone().fold(0, |kinds, token| kinds | token.kinds),
            other.clone().fold(0, |kinds, token| kinds | token.kinds),
        ];
        let [a, b] = kinds;
        let open = |team: u8, other: u8| {
            team & kind::TEAM != 0 && other & (kind::PLACE | kind::ORGANISATION) != 0
        };
        let small = |token: &Token<'_>| token.weak == Weak::Small;
        Features {
            left,
            right,
            left_word,
            right_word,
            group: group.is_some(),
            dated: matches!(name, "weekday" | "month"),
            month: group.is_some() && has_group("month"),
            kin: has_group("kin"),
            code: pairs().any(|(a, b)| a.code.is_some() && a.code == b.code),
            cosine: cosines.reduce(f32::max),
            kinds: if a & b != 0 {
                Kinds::Same
            } else if (a | b) & kind::DAY != 0 {
                Kinds::Apart
            } else if a == 0 || b == 0 || open(a, b) || open(b, a) {
                Kinds::Open
            } else {
                Kinds::Apart
            },
            day: kinds.contains(&kind::DAY),
            places: a & b & kind::PLACE != 0,
            one_place: (a ^ b) & kind::PLACE != 0,
            known: group.is_some()
                || pairs().any(|(a, b)| a.is_of_a_country() && b.is_of_a_country()),
            shared: runs.iter().all(|run| run.shared != 0),
            strong: both(&|token| token.class == Class::Name),
            maybe: both(&|token| token.may_be()),
            some: both(&|token| token.class != Class::No),
            listed: both(&|token| {
                token.class == Class::Name
                    || token.weak == Weak::No
                        && (token.class == Class::Rare || token.is(flag::ALSO))
            }),
            unlisted: both(&|token| match token.class {
                Class::Name => true,
                Class::Rare => !small(token),
                Class::Maybe => token.weak == Weak::No,
                Class::Some | Class::No => false,
            }),
            capital: both(&|token| token.class != Class::No && token.is_capital() && !token.first),
            runs,
        }
    }

    /// Whether the texts have the same words, but for all that is left over, and the runs stand at the same
    /// place of them.
    fn is_exact(&self, left: [u64; 2], runs: [Run; 2]) -> bool {
        let rest = |side: usize| {
            let tokens = self.texts[side].tokens.iter().enumerate();
            tokens.filter(move |(place, _)| left[side] & 1 << place == 0)
        };
        let before = |side: usize| {
            let first = runs[side].left.trailing_zeros();
            first - (left[side] & ((1 << first) - 1)).count_ones()
        };
        before(0) == before(1)
            && rest(0).map(|(_, token)| token.key).eq(rest(1).map(|(_, token)| token.key))
    }

    /// Whether two runs make texts say different things; `extra` runs stand beside them. How far the rest agrees is asked for
    /// where it decides.
    fn differ(
        &self,
        run: &Features,
        left: [u64; 2],
        extra: usize,
        agreement: impl Fn() -> f64,
    ) -> bool {
        let all = |flags: [bool; 2]| flags == [true; 2];
        let any = |flags: [bool; 2]| flags != [false; 2];
        let [one, other] = self.texts;
        let (beside, both) = (run.left || run.right, run.left && run.right);
        let noisy = || one.is_noisy() || other.is_noisy();
        // A user's name that stands in one alone was a name.
        if one.mentions() != other.mentions() {
            return false;
        }
        if run.code {
            return (run.left_word || run.right_word) && agreement() >= REST_BESIDE;
        }
        if run.shared && (run.kinds == Kinds::Apart || run.one_place) {
            return false;
        }
        let words = one.tokens.len() - left[0].count_ones() as usize;
        let sure = run.group
            || all(run.unlisted)
            || all(run.capital)
            || all(run.some) && (all(run.listed) || any(run.strong) || run.kinds == Kinds::Same);
        if words >= 2 && sure && self.is_exact(left, run.runs) {
            return true;
        }
        if one.tokens.len().max(other.tokens.len()) > LONGEST {
            return false;
        }
        if run.group && !run.dated {
            let beside = (run.right_word || both) && !run.kin;
            return extra == 0 && agreement() >= if beside { REST_GROUP } else { REST_SURE };
        }
        let unlike = run.cosine.is_none_or(|cosine| cosine < NEAR_PLACES);
        let frame = both && all(run.strong) && !run.known;
        if all(run.listed) && all(run.some) && extra == 0 && !run.day && !noisy() {
            let needed = match (run.kinds == Kinds::Same && unlike, frame) {
                (true, _) => REST_LISTED,
                (false, true) => REST_SURE,
                (false, false) => f64::INFINITY,
            };
            if needed < 1.0 && agreement() >= needed {
                return true;
            }
        }
        if run.kinds == Kinds::Apart || extra > 1 || !all(run.maybe) || !any(run.strong) {
            return false;
        }
        let near = if run.one_place || run.places { NEAR_PLACES } else { NEAR };
        if !run.known && run.cosine.is_some_and(|cosine| cosine >= near) {
            return false;
        }
        let certain = run.kinds == Kinds::Same && all(run.strong);
        let noisy = noisy();
        if noisy && !(extra == 0 && (both || beside && (run.known || certain))) {
            return false;
        }
        let rest = agreement();
        let in_noise = if run.known { REST_SURE } else { REST_NOISY };
        if noisy && !both && rest < in_noise {
            return false;
        }
        if run.day {
            let needed = match (run.month, beside) {
                (true, true) => REST_MONTH,
                (false, true) => REST_DAY - 0.05,
                (_, false) => REST_DAY,
            };
            return extra == 0 && rest >= needed;
        }
        let needed = match (certain && extra == 0, beside) {
            (true, true) => REST_BESIDE,
            (true, false) => REST,
            (false, _) => REST_OPEN,
        };
        let alone = extra == 0 && (rest >= REST_SURE || all(run.strong));
        rest >= needed && (beside || alone)
    }

    /// How far the rest of each text is covered by the rest of the other, the less of the two.
    fn agreement(&self, without: [u64; 2]) -> f64 {
        let rest = [0, 1].map(|side: usize| -> Vec<&Token<'_>> {
            let tokens = self.texts[side].tokens.iter().enumerate();
            let rest = tokens.filter(|(place, _)| without[side] & 1 << place == 0);
            rest.map(|(_, token)| token).collect()
        });
        if rest.iter().any(Vec::is_empty) {
            return if rest.iter().all(Vec::is_empty) { 1.0 } else { 0.0 };
        }
        let mut covered = [vec![0.0_f32; rest[0].len()], vec![0.0_f32; rest[1].len()]];
        // Cosines are dear, and the best of a word that the other text has is known.
        for only_equal in [true, false] {
            for (i, one) in rest[0].iter().enumerate() {
                for (j, other) in rest[1].iter().enumerate() {
                    let [of_one, of_other] = &mut covered;
                    let (of_one, of_other) = (&mut of_one[i], &mut of_other[j]);
                    let cosine = if only_equal {
                        let known = one.known.zip(other.known);
                        let alias = known.is_some_and(|(one, other)| meet(&one.same, &other.same));
                        if one.equals(other) || alias { 1.0 } else { 0.0 }
                    } else if *of_one < 1.0 || *of_other < 1.0 {
                        self.cosine(one, other).unwrap_or(0.0)
                    } else {
                        continue;
                    };
                    (*of_one, *of_other) = (of_one.max(cosine), of_other.max(cosine));
                }
            }
        }
        // Powers of 1.75 and .75, and of roots alone, which are the same on every processor.
        let raised = |number: f64| (number * number.sqrt()).sqrt();
        let share = |tokens: &[&Token<'_>], covered: &[f32]| {
            let (mut met, mut whole) = (0.0, 0.0);
            for (token, covered) in tokens.iter().zip(covered) {
                let length = f64::from(self.length(token));
                let weight = length * raised(length);
                met += weight * raised(f64::from(*covered));
                whole += weight;
            }
            if whole > 0.0 { met / whole } else { 0.0 }
        };
        share(&rest[0], &covered[0]).min(share(&rest[1], &covered[1]))
    }
}

/// How many words two sorted bags have in common.
fn common(mut one: &[u32], mut other: &[u32]) -> usize {
    let mut common = 0;
    while let ([a, rest @ ..], [b, others @ ..]) = (one, other) {
        common += usize::from(a == b);
        one = if a <= b { rest } else { one };
        other = if b <= a { others } else { other };
    }
    common
}

fn meet(one: &[u32], other: &[u32]) -> bool {
    one.iter().any(|own| other.contains(own))
}

/// The tokens whose first letters a word is: `nyc` for New York City.
fn initials(word: &str, others: &[Token<'_>]) -> Option<std::ops::Range<usize>> {
    if !(2..=5).contains(&word.len()) {
        return None;
    }
    (0..others.len()).find_map(|from| {
        let (mut rest, mut begun) = (word, None);
        for (place, token) in others.iter().enumerate().skip(from) {
            let first = token.text.chars().next().unwrap_or(' ');
            if rest.is_empty() {
                return begun.map(|begun| begun..place);
            } else if begun.is_none() && token.text == "us" && rest.starts_with("us") {
                (rest, begun) = (&rest[2..], Some(place));
            } else if let Some(left) = rest.strip_prefix(first) {
                (rest, begun) = (left, begun.or(Some(place)));
            } else if !token.is(flag::JOINER) || begun.is_none() {
                return None;
            }
        }
        begun.filter(|_| rest.is_empty()).map(|begun| begun..others.len())
    })
}

/// Two neighbours that make a word: `BA 117`.
fn written_apart(word: &str, others: &[Token<'_>]) -> Option<std::ops::Range<usize>> {
    let makes = |pair: &[Token<'_>]| matches!(pair, [one, other] if word.strip_prefix(one.text) == Some(other.text));
    let at = others.windows(2).position(makes).filter(|_| word.len() > 2)?;
    Some(at..at + 2)
}

/// A word without marks on its letters, and with two letters for one that has them.
fn plain(word: &str) -> [String; 2] {
    let base: String = word.nfd().filter(|c| !is_combining_mark(*c)).collect();
    let base = base.replace('ß', "ss").replace('ø', "o").replace('æ', "ae");
    let pairs = [('ä', "ae"), ('ö', "oe"), ('ü', "ue"), ('ß', "ss"), ('ø', "oe")];
    [base, pairs.iter().fold(word.to_owned(), |word, (from, to)| word.replace(*from, to))]
}

/// Whether two neighbours of the one have changed places in the other.
fn is_swap(x: &[u8], y: &[u8]) -> bool {
    let mut differ = (0..x.len().min(y.len())).filter(|at| x[*at] != y[*at]);
    let (Some(a), Some(b), None) = (differ.next(), differ.next(), differ.next()) else {
        return false;
    };
    x.len() == y.len() && b == a + 1 && x[a] == y[b] && x[b] == y[a]
}
