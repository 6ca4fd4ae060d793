//! Names that two texts of one template differ in: "Turkey raises rates" and "Argentina raises
//! rates".
//!
//! A name of one text is left over where the other has no word for the same thing. Texts in which
//! both have such a name differ in one if what is left without them agrees, the more the less sure
//! the names are: by their kinds, by what stands beside them, and by how far the rest of each
//! covers that of the other (as in [`coverage`](crate::methods::sets::coverage), without discount).
//! A name that is left out is no difference. The bars were chosen on STS 2012 to 2015 and on 384
//! exchanged names.

use cognate_kernels::vector;

use crate::methods::common::word_cosines::WordCosines;
use crate::methods::polarity::name_list::{Class, Code, Known, List, flag, kind};
use crate::methods::polarity::name_spelling::{are_plainly_same, are_spelled_alike};
use crate::methods::polarity::name_text::{MAX, Text, TextNames, Token, Weak, places};
use crate::model::phrase::TOKEN_BYTES;
use crate::model::{Model, ModelError, Phrase};

/// Texts agree too little if the longer shares less than one word in this many with the other; most
/// texts of a ranking do.
const SHARED: usize = 5;
/// In longer texts names are left out and put in for other reasons.
const LONGEST: usize = 18;

/// From these cosines on two words name one thing: any, and two names of a kind.
const SAME: f32 = 0.72;
const SAME_KIND: f32 = 0.8;
/// From these on it is not sure whether they do: any, and places.
const NEAR: f32 = 0.7;
const NEAR_PLACES: f32 = 0.6;

/// How far the rest has to agree: beside a word that both have, for two names of a kind, for
/// others.
const REST_BESIDE: f64 = 0.51;
const REST: f64 = 0.58;
const REST_OPEN: f64 = 0.66;
/// For members of a group beside the same word, for days and months, for words that are names at
/// times, for what nothing else speaks for.
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

/// The tokens left over of two texts, as bits, and which token of the other names the same.
struct Left {
    left: [u64; 2],
    partners: [[Option<u8>; MAX]; 2],
}

/// Neighbouring names of a text, a bit a token: those left over, and those that the other has.
#[derive(Clone, Copy)]
struct Run {
    left: u64,
    shared: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Kinds {
    Same,
    /// One is not known, or a team beside its place or its firm.
    Open,
    Apart,
}

/// The relations of two runs.
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
    // Of both runs.
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

    /// The tokens of two texts that name what the other lacks, if they differ in a name. The cosines
    /// of their words are computed where they are needed and not known.
    pub(super) fn exchanged(
        &self,
        texts: [&Phrase<'_>; 2],
        names: [&TextNames; 2],
        cosines: &mut WordCosines,
    ) -> Option<Exchanged> {
        let [one, other] = texts;
        let most = one.tokens_read().max(other.tokens_read());
        let shares = || share(one.listed_in_bag(), other.listed_in_bag(), most.div_ceil(SHARED));
        let own = [texts, [other, one]];
        let has_own = |side: usize| names[side].has_own(&self.list, own[side], names[1 - side]);
        // A user's name that stands in one alone was a name.
        let mentioned = |text: &Phrase<'_>| mentions(text.tokens().source());
        let as_many = || mentioned(one) == mentioned(other);
        if most > MAX || !shares() || !as_many() || !has_own(0) || !has_own(1) {
            return None;
        }
        // The same in either order of the texts.
        let turned = one.token_keys().gt(other.token_keys());
        let phrases = if turned { [other, one] } else { texts };
        let names = if turned { [names[1], names[0]] } else { names };
        let read = [0, 1].map(|side| names[side].text(&self.list, phrases[side]));
        let texts = [&*read[0], &*read[1]];
        let own = [texts[0].own(texts[1]), texts[1].own(texts[0])];
        if own.contains(&0) || !may_differ(texts, own) {
            return None;
        }
        cosines.know(phrases);
        let mut rows = [[None; MAX]; 2];
        for (rows, text) in rows.iter_mut().zip(texts) {
            for (row, token) in rows.iter_mut().zip(&text.tokens) {
                let place = token.row.and_then(|row| cosines.union.place(row));
                *row = place.and_then(|place| u8::try_from(place).ok());
            }
        }
        let pair = Pair { names: self, phrases, texts, cosines, rows };
        let runs = pair.exchanged(own)?;
        let tokens = |run: Run| places(run.left | run.shared).map(|place| place as u32).collect();
        let [one, other] = runs.map(tokens);
        Some(if turned { [other, one] } else { [one, other] })
    }
}

/// Two texts that were read.
struct Pair<'t> {
    names: &'t Names,
    phrases: [&'t Phrase<'t>; 2],
    texts: [&'t Text; 2],
    cosines: &'t WordCosines,
    /// For each token the place of its row among those of the cosines.
    rows: [[Option<u8>; MAX]; 2],
}

impl Pair<'_> {
    fn exchanged(&self, own: [u64; 2]) -> Option<[Run; 2]> {
        let Left { left, partners } = self.left_over(own)?;
        let runs = [0, 1].map(|side| self.runs(side, left[side], &partners[side]));
        // A bit a run.
        let free = [0, 1].map(|side: usize| {
            let opposite = &runs[1 - side];
            // Beside a shared name that the other text has alone a name only says more: Angela
            // Merkel.
            let says_more = |run: &Run| {
                let of_partners = |place| self.partner(side, place, &partners[side]);
                let shared = places(run.shared).filter_map(of_partners);
                let shared = shared.fold(0_u64, |bits, place| bits | 1 << place);
                run.shared == 0 || opposite.iter().any(|other| other.shared & shared != 0)
            };
            let free = runs[side].iter().enumerate().filter(|(_, run)| says_more(run));
            free.fold(0_u64, |bits, (place, _)| bits | 1 << place)
        });
        let mut best: Option<Features> = None;
        for one in places(free[0]) {
            for other in places(free[1]) {
                let features = self.features([runs[0][one], runs[1][other]]);
                let rank = |features: &Features| (features.is_possible(), features.fit());
                if best.as_ref().is_none_or(|best| rank(&features) > rank(best)) {
                    best = Some(features);
                }
            }
        }
        let best = best?;
        let without = [0, 1]
            .map(|side: usize| places(free[side]).fold(0, |bits, run| bits | runs[side][run].left));
        let extra = (free[0].count_ones() + free[1].count_ones()) as usize - 2;
        self.differ(&best, left, extra, || self.agreement(without)).then_some(best.runs)
    }

    fn token(&self, side: usize, place: usize) -> Option<&Token> {
        self.texts[side].tokens.get(place)
    }

    fn text(&self, side: usize, place: usize) -> &str {
        let token = self.token(side, place);
        token.map_or("", |token| token.text(self.phrases[side], place))
    }

    fn known(&self, token: &Token) -> &Known {
        self.names.list.known(token.known)
    }

    /// Returns the cosine of a token of the one text and a token of the other: of their rows, or of their
    /// stems' rows.
    fn cosine(&self, [i, j]: [usize; 2]) -> Option<f32> {
        if self.is_part([i, j]) {
            return None;
        }
        if let (Some(one), Some(other)) = (self.rows[0][i], self.rows[1][j]) {
            return Some(self.cosines.cosine(one.into(), other.into()));
        }
        // The owner of a listed word is no word of its text.
        let vectors = self.phrases[0].model().vectors();
        let row = |side: usize, place| vectors.row(self.token(side, place)?.row?);
        Some(vector::cosine(row(0, i)?, row(1, j)?))
    }

    /// Whether both are one word, which in one text alone makes another name with the word before it: York is
    /// not New York.
    fn is_part(&self, [i, j]: [usize; 2]) -> bool {
        let (Some(one), Some(other)) = (self.token(0, i), self.token(1, j)) else { return false };
        one.joined != other.joined && self.text(0, i) == self.text(1, j)
    }

    fn length(&self, side: usize, place: usize) -> f32 {
        if let Some(row) = self.rows[side][place] {
            return self.cosines.lengths[usize::from(row)];
        }
        let vectors = self.phrases[0].model().vectors();
        let row = self.token(side, place).and_then(|token| vectors.row(token.row?));
        row.map_or(self.names.unlisted, vector::norm)
    }

    /// The names of either text for which the other has no word; `None` where one has none.
    fn left_over(&self, own: [u64; 2]) -> Option<Left> {
        let [one, other] = self.texts.map(|text| &text.tokens);
        let mut partners = [[None; MAX]; 2];
        for i in places(own[0]) {
            for j in 0..other.len() {
                if self.same([i, j], false) {
                    partners[0][i] = Some(j as u8);
                    partners[1][j].get_or_insert(i as u8);
                }
            }
        }
        for j in places(own[1]).filter(|j| partners[1][*j].is_none()).collect::<Vec<_>>() {
            for i in (0..one.len()).filter(|i| own[0] & 1 << i == 0) {
                if self.same([i, j], false) {
                    partners[1][j] = Some(i as u8);
                    partners[0][i].get_or_insert(j as u8);
                }
            }
        }
        for side in [0, 1] {
            for place in places(own[side]) {
                if partners[side][place].is_some() {
                    continue;
                }
                let word = self.text(side, place);
                let written_out = self.initials(word, 1 - side);
                let written_out = written_out.or_else(|| self.written_apart(word, 1 - side));
                if let Some(range) = written_out {
                    partners[side][place] = Some(range.start as u8);
                    range.for_each(|other| partners[1 - side][other] = Some(place as u8));
                }
            }
        }
        let left = [0, 1].map(|side: usize| {
            let left = places(own[side]).filter(|place| partners[side][*place].is_none());
            self.texts[side].whole(left.fold(0, |bits, place| bits | 1 << place))
        });
        (!left.contains(&0)).then_some(Left { left, partners })
    }

    /// The token of the other text that names the same as this token.
    fn partner(&self, side: usize, place: usize, partners: &[Option<u8>; MAX]) -> Option<usize> {
        let token = self.token(side, place)?;
        let stands = || self.texts[1 - side].tokens.iter().rposition(|other| other.equals(token));
        partners.get(place)?.map(usize::from).or_else(stands)
    }

    fn runs(&self, side: usize, left: u64, partners: &[Option<u8>; MAX]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut within = false;
        for (place, token) in self.texts[side].tokens.iter().enumerate() {
            let is_left = left & 1 << place != 0;
            let name =
                token.class == Class::Name || token.class == Class::Maybe && token.is_capital;
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

    /// Whether a word of the one text and one of the other name one thing; a name and a common word
    /// by their vectors only where common words are meant, too.
    fn same(&self, [i, j]: [usize; 2], common: bool) -> bool {
        let (Some(one), Some(other)) = (self.token(0, i), self.token(1, j)) else { return false };
        if one.equals(other) {
            return true;
        }
        // Whether they are spelt nearly alike costs the product of their lengths.
        if one.length.max(other.length) as usize > TOKEN_BYTES {
            return false;
        }
        let [a, b] = [(0, i), (1, j)].map(|(side, place)| move || self.text(side, place));
        if self.is_part([i, j]) {
            return false;
        }
        let is_ascii = self.texts[0].is_ascii && self.texts[1].is_ascii;
        if !is_ascii && are_plainly_same(a(), b()) {
            return true;
        }
        if let (Some([group, a]), Some([same, b])) = (one.group, other.group)
            && group == same
        {
            return a == b;
        }
        if one.known > 0 && other.known > 0 {
            let [a, b] = [self.known(one), self.known(other)];
            if meet(&a.same, &b.same) {
                return true;
            }
            if one.is_of_a_country && other.is_of_a_country {
                // Two countries or two towns are never one; a country, its people and its towns
                // are.
                return meet(&a.countries, &b.countries)
                    || meet(&a.countries, &b.within)
                    || meet(&a.within, &b.countries);
            }
        }
        // XR500 is not XR600, however alike they are spelled.
        if one.code == Some(Code::Digits) && other.code == one.code {
            return false;
        }
        let begins_alike = one.initial == other.initial;
        // Other names are alike only by four letters that begin alike, or by a longer word.
        let shorter = one.length.min(other.length);
        // An MP and MPs.
        let is_plural = |one: &str, other: &str| other.strip_suffix('s') == Some(one);
        if matches!(shorter, 2 | 3) && begins_alike && (is_plural(a(), b()) || is_plural(b(), a()))
        {
            return true;
        }
        if shorter >= 4
            && (begins_alike || one.tag || other.tag || one.length.max(other.length) >= 10)
        {
            let turned = one.length > other.length;
            let (one, other) = ((one, a()), (other, b()));
            let endings = &self.names.list.endings;
            if match turned {
                true => are_spelled_alike(endings, other, one),
                false => are_spelled_alike(endings, one, other),
            } {
                return true;
            }
        }
        if one.row.is_some() && one.row == other.row {
            return true;
        }
        let is_name = |token: &Token| token.class == Class::Name;
        if !common && (is_name(one) && other.is_common() || is_name(other) && one.is_common()) {
            return false;
        }
        let Some(cosine) = self.cosine([i, j]) else { return false };
        if cosine >= 0.5 && shorter >= 6 && begins_alike && strsim::osa_distance(a(), b()) <= 1 {
            return true;
        }
        let named = one.class != Class::No && other.class != Class::No;
        cosine >= if named && one.kinds & other.kinds != 0 { SAME_KIND } else { SAME }
    }

    /// The tokens of a text whose first letters a word is: `nyc` for New York City.
    fn initials(&self, word: &str, side: usize) -> Option<std::ops::Range<usize>> {
        if !(2..=5).contains(&word.len()) {
            return None;
        }
        let tokens = &self.texts[side].tokens;
        let begins = |from: &usize| word.as_bytes().first() == Some(&tokens[*from].initial);
        (0..tokens.len()).filter(begins).find_map(|from| {
            let (mut rest, mut begun) = (word, None);
            for (place, token) in tokens.iter().enumerate().skip(from) {
                let text = self.text(side, place);
                if rest.is_empty() {
                    return begun.map(|begun| begun..place);
                } else if begun.is_none() && text == "us" && rest.starts_with("us") {
                    (rest, begun) = (&rest[2..], Some(place));
                } else if let Some(left) = rest.strip_prefix(text.chars().next().unwrap_or(' ')) {
                    (rest, begun) = (left, begun.or(Some(place)));
                } else if !token.is(flag::JOINER) || begun.is_none() {
                    return None;
                }
            }
            begun.filter(|_| rest.is_empty()).map(|begun| begun..tokens.len())
        })
    }

    /// Two neighbours of a text that make a word: `BA 117`.
    fn written_apart(&self, word: &str, side: usize) -> Option<std::ops::Range<usize>> {
        let tokens = &self.texts[side].tokens;
        let makes = |at: &usize| {
            (tokens[*at].length + tokens[at + 1].length) as usize == word.len()
                && word.strip_prefix(self.text(side, *at)) == Some(self.text(side, at + 1))
        };
        let at = (0..tokens.len().saturating_sub(1)).find(makes).filter(|_| word.len() > 2)?;
        Some(at..at + 2)
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
                let is = |place: &usize| Some(self.token(side, *place)?.is(flag::ARTICLE));
                while place.as_ref().and_then(is)? {
                    place = place.and_then(|place| place.checked_add_signed(step));
                }
                place
            });
            match (one, other) {
                (None, None) => (true, false),
                (Some(a), Some(b)) => [self.same([a, b], true); 2].into(),
                _ => (false, false),
            }
        };
        let ((left, left_word), (right, right_word)) = (beside(-1), beside(1));
        let both = |is: &dyn Fn(&Token) -> bool| [one.clone().any(is), other.clone().any(is)];
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
        let listed = |side: usize| {
            let is = move |place: &usize| self.token(side, *place).is_some_and(|t| t.id.is_some());
            places(runs[side].left).filter(is)
        };
        let cosines = listed(0).flat_map(|i| listed(1).filter_map(move |j| self.cosine([i, j])));
        let kinds = [
            one.clone().fold(0, |kinds, token| kinds | token.kinds),
            other.clone().fold(0, |kinds, token| kinds | token.kinds),
        ];
        let [a, b] = kinds;
        let open = |team: u8, other: u8| {
            team & kind::TEAM != 0 && other & (kind::PLACE | kind::ORGANISATION) != 0
        };
        let small = |token: &Token| token.weak == Weak::Small;
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
            known: group.is_some() || pairs().any(|(a, b)| a.is_of_a_country && b.is_of_a_country),
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
            capital: both(&|token| token.class != Class::No && token.is_capital && !token.first),
            runs,
        }
    }

    /// Whether the texts have the same words, but for all that is left over, and the runs stand at
    /// the same place of them.
    fn is_exact(&self, left: [u64; 2], runs: [Run; 2]) -> bool {
        let before = |side: usize| {
            let first = runs[side].left.trailing_zeros();
            first - (left[side] & ((1 << first) - 1)).count_ones()
        };
        before(0) == before(1) && rest_is_same(self.texts, left)
    }

    /// Whether two runs make the texts say different things; `extra` counts the runs beside them.
    /// How far the rest of the texts agrees is computed only if it decides.
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
        let sources = self.phrases.map(|phrase| phrase.tokens().source());
        let noisy = || one.is_noisy(sources[0]) || other.is_noisy(sources[1]);
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
        if is_long(self.texts) {
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
        let rest =
            [0, 1].map(|side: usize| !without[side] & ((1 << self.texts[side].tokens.len()) - 1));
        if rest.contains(&0) {
            return if rest == [0; 2] { 1.0 } else { 0.0 };
        }
        let mut covered = [[0.0_f32; MAX]; 2];
        let [of_one, of_other] = &mut covered;
        for i in places(rest[0]) {
            for j in places(rest[1]) {
                let (Some(one), Some(other)) = (self.token(0, i), self.token(1, j)) else {
                    continue;
                };
                let alias =
                    || one.known > 0 && meet(&self.known(one).same, &self.known(other).same);
                let cosine = match one.equals(other) || alias() {
                    true => 1.0,
                    false => self.cosine([i, j]).unwrap_or(0.0),
                };
                (of_one[i], of_other[j]) = (of_one[i].max(cosine), of_other[j].max(cosine));
            }
        }
        // Powers of 1.75 and .75, and of roots alone, which are the same on every processor.
        let raised = |number: f64| (number * number.sqrt()).sqrt();
        let share = |side: usize| {
            let (mut met, mut whole) = (0.0, 0.0);
            for place in places(rest[side]) {
                let length = f64::from(self.length(side, place));
                let weight = length * raised(length);
                met += weight * raised(f64::from(covered[side][place]));
                whole += weight;
            }
            if whole > 0.0 { met / whole } else { 0.0 }
        };
        share(0).min(share(1))
    }
}

fn is_long(texts: [&Text; 2]) -> bool {
    texts.iter().any(|text| text.tokens.len() > LONGEST)
}

/// Whether texts with these names of their own can differ in one: long texts do in a code alone, or where all
/// else is the same.
fn may_differ(texts: [&Text; 2], own: [u64; 2]) -> bool {
    let is_code = |text: &Text, at: usize| text.tokens.get(at).is_some_and(|t| t.code.is_some());
    let has_code = |(text, own): (&&Text, u64)| places(own).any(|place| is_code(text, place));
    !is_long(texts)
        || texts.iter().zip(own).all(has_code)
        || rest_is_same(texts, [texts[0].whole(own[0]), texts[1].whole(own[1])])
}

/// Whether the texts have the same words in the same order, but for some of either.
fn rest_is_same(texts: [&Text; 2], without: [u64; 2]) -> bool {
    let [one, other] = [0, 1].map(|side: usize| {
        let rest = texts[side].tokens.iter().enumerate();
        let rest = rest.filter(move |(place, _)| without[side] & 1 << place == 0);
        rest.map(|(_, token)| token.key)
    });
    one.eq(other)
}

/// Whether two sorted bags have at least this many words in common.
fn share(mut one: &[u32], mut other: &[u32], mut least: usize) -> bool {
    while least > 0 {
        let ([a, rest @ ..], [b, others @ ..]) = (one, other) else { return false };
        if rest.len().min(others.len()) + 1 < least {
            return false;
        }
        least -= usize::from(a == b);
        one = if a <= b { rest } else { one };
        other = if b <= a { others } else { other };
    }
    true
}

fn meet(one: &[u32], other: &[u32]) -> bool {
    one.iter().any(|own| other.contains(own))
}

/// How many users a text mentions.
fn mentions(text: &str) -> usize {
    let is_name = |name: &&str| name.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    text.split('@').skip(1).filter(is_name).count()
}
