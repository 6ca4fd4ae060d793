//! Tweets in memory, about 200 bytes each, and the choice of tweets that form pairs.
//!
//! Related pairs are drawn in rounds: in each round every tweet draws one partner, uniformly from
//! the tweets that share a hashtag with it within the allowed minutes. So a burst of thousands of
//! tweets gives no tweet more than one pair a round, and a limit is spread over all tweets.
//! Non-related pairs are drawn from the tweets of the related pairs, each as often as it occurs
//! there, so that no text reveals its label; only tweets left over at the end take partners from
//! all tweets.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use cognate::text;
use cognate::text::{Hashtags, Kind, Normalisation, Tokens};
use cognate_files::progress::Progress;
use cognate_kernels::random::Random;
use xxhash_rust::xxh3::xxh3_128;

use crate::pairs::tweets::{Row, Texts};
use crate::pairs::{Rejections, TEXT_BYTES};

/// Partners that a tweet tries before it gives up.
const DRAWS: usize = 64;

pub(super) struct Pairing<'t> {
    tweets: &'t Tweets,
    key: Key,
    milliseconds: i64,
    per_tweet: u32,
    /// Entries (key, tweet), sorted by key and then by time.
    groups: Vec<(u32, u32)>,
    pairs: HashSet<[u32; 2]>,
    pub(super) related_rejected: Rejections,
    pub(super) non_related_rejected: Rejections,
}

impl<'t> Pairing<'t> {
    pub(super) fn new(tweets: &'t Tweets, key: Key, milliseconds: i64, per_tweet: u32) -> Self {
        let mut groups: Vec<(u32, u32)> = (0..tweets.len() as u32)
            .flat_map(|tweet| tweets.keys(key, tweet).iter().map(move |&key| (key, tweet)))
            .collect();
        groups.sort_unstable_by_key(|&(key, tweet)| (key, tweets.time(tweet), tweet));
        Self {
            tweets,
            key,
            milliseconds,
            per_tweet,
            groups,
            pairs: HashSet::new(),
            related_rejected: Rejections::default(),
            non_related_rejected: Rejections::default(),
        }
    }

    pub(super) fn related(&mut self, wanted: usize, random: &mut Random) -> Vec<[u32; 2]> {
        let mut uses = vec![0; self.tweets.len()];
        let mut drawn = Vec::new();
        let mut turns: Vec<u32> = (0..self.tweets.len() as u32).collect();
        let progress = Progress::count("pairs");
        for round in 0..self.per_tweet {
            if turns.is_empty() {
                break;
            }
            random.shuffle(&mut turns);
            // A tweet without a partner now will not find one later: candidates only become fewer.
            turns.retain(|&tweet| {
                if drawn.len() >= wanted || uses[tweet as usize] >= self.per_tweet {
                    return false;
                }
                let Some(partner) = self.partner(tweet, &uses, random) else { return false };
                uses[tweet as usize] += 1;
                uses[partner as usize] += 1;
                drawn.push([tweet, partner]);
                true
            });
            progress.at(u64::from(round) + 1, u64::from(self.per_tweet));
        }
        drawn
    }

    /// Draws as many non-related pairs as `related` has, or fewer if the tweets do not allow more.
    pub(super) fn non_related(
        &mut self,
        related: &[[u32; 2]],
        random: &mut Random,
    ) -> Vec<[u32; 2]> {
        let mut uses = vec![0; self.tweets.len()];
        let mut open: Vec<u32> = related.iter().flatten().copied().collect();
        random.shuffle(&mut open);
        let (mut drawn, mut left) = (Vec::new(), Vec::new());
        while let Some(tweet) = open.pop() {
            let mut places = draws(open.len(), random).into_iter();
            let Some(place) = places.find(|&place| self.apart(tweet, open[place], &uses)) else {
                left.push(tweet);
                continue;
            };
            drawn.push(self.pair(tweet, open.swap_remove(place), &mut uses));
        }
        for tweet in left {
            if drawn.len() == related.len() {
                break;
            }
            let mut others = draws(self.tweets.len(), random).into_iter();
            let other = others.find(|&other| self.apart(tweet, other as u32, &uses));
            drawn.extend(other.map(|other| self.pair(tweet, other as u32, &mut uses)));
        }
        drawn
    }

    fn pair(&mut self, one: u32, other: u32, uses: &mut [u32]) -> [u32; 2] {
        uses[one as usize] += 1;
        uses[other as usize] += 1;
        self.pairs.insert(ordered(one, other));
        [one, other]
    }

    fn partner(&mut self, tweet: u32, uses: &[u32], random: &mut Random) -> Option<u32> {
        let windows: Vec<Range<usize>> =
            self.tweets.keys(self.key, tweet).iter().map(|&key| self.window(key, tweet)).collect();
        let total: usize = windows.iter().map(Range::len).sum();
        let partner = draws(total, random).into_iter().find_map(|mut place| {
            let window = windows.iter().find(|window| {
                let inside = place < window.len();
                place -= if inside { 0 } else { window.len() };
                inside
            })?;
            let (key, other) = self.groups[window.start + place];
            self.try_pair(tweet, other, key, uses).then_some(other)
        })?;
        self.pairs.insert(ordered(tweet, partner));
        Some(partner)
    }

    /// The range of `groups` with this key and a time within the allowed minutes of the tweet.
    fn window(&self, key: u32, tweet: u32) -> Range<usize> {
        let time = self.tweets.time(tweet);
        let earliest = (key, time.saturating_sub(self.milliseconds));
        let latest = (key, time.saturating_add(self.milliseconds));
        let at = |&(key, tweet): &(u32, u32)| (key, self.tweets.time(tweet));
        let from = self.groups.partition_point(|entry| at(entry) < earliest);
        from..self.groups.partition_point(|entry| at(entry) <= latest)
    }

    /// Whether two tweets found under `key`, close enough in time, are related.
    fn try_pair(&mut self, one: u32, other: u32, key: u32, uses: &[u32]) -> bool {
        let (first, second) = (self.tweets.keys(self.key, one), self.tweets.keys(self.key, other));
        // Tweets that share several hashtags occur in several groups; only the first may draw them.
        if one == other || common(first, second).next() != Some(key) {
            return false;
        }
        let shared = common(first, second).count();
        !self.related_rejected.reject([
            &|| uses[other as usize] >= self.per_tweet,
            &|| self.pairs.contains(&ordered(one, other)),
            &|| 2 * shared < first.len() + second.len() - shared,
            &|| alike([one, other].map(|tweet| self.tweets.words(tweet))),
        ])
    }

    fn apart(&mut self, one: u32, other: u32, uses: &[u32]) -> bool {
        if one == other {
            return false;
        }
        let meet = |[one, other]: [&[u32]; 2]| common(one, other).next().is_some();
        let both = [one, other];
        !self.non_related_rejected.reject([
            &|| both.iter().any(|&tweet| uses[tweet as usize] >= self.per_tweet),
            &|| self.pairs.contains(&ordered(one, other)),
            &|| {
                meet(both.map(|tweet| self.tweets.keys(self.key, tweet)))
                    || meet(both.map(|tweet| self.tweets.tags(tweet)))
            },
            &|| alike(both.map(|tweet| self.tweets.words(tweet))),
        ])
    }
}

impl Rejections {
    /// Counts the first reason that applies; returns whether any reason applies.
    fn reject(&mut self, reasons: [&dyn Fn() -> bool; 4]) -> bool {
        let counts = [&mut self.used_up, &mut self.repeated, &mut self.hashtags, &mut self.words];
        let reason = counts.into_iter().zip(reasons).find(|(_, applies)| applies());
        reason.map(|(count, _)| *count += 1).is_some()
    }
}

fn ordered(one: u32, other: u32) -> [u32; 2] {
    [one.min(other), one.max(other)]
}

/// Whether the Jaccard similarity of two sets of words is 0.5 or more.
fn alike([one, other]: [&[u32]; 2]) -> bool {
    let shared = common(one, other).count();
    2 * shared >= one.len() + other.len() - shared
}

/// Returns the values that both lists contain; each list must be sorted and without repeats.
fn common<'v>(one: &'v [u32], other: &'v [u32]) -> impl Iterator<Item = u32> + 'v {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let (left, right) = (**one.peek()?, **other.peek()?);
            if left <= right {
                one.next();
            }
            if right <= left {
                other.next();
            }
            if left == right {
                return Some(left);
            }
        }
    })
}

/// Random positions below `total` to try: a permutation of all if there are few.
fn draws(total: usize, random: &mut Random) -> Vec<usize> {
    if total > DRAWS {
        return (0..DRAWS).map(|_| random.below(total)).collect();
    }
    let mut places: Vec<usize> = (0..total).collect();
    random.shuffle(&mut places);
    places
}

const FEWEST_WORDS: usize = 5;

/// Hashtags that do not tell the topic of a tweet.
const GENERAL: [&str; 3] = ["#breaking", "#update", "#news"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Kept,
    TooShort,
    TooLong,
    WithoutKey,
    Repeated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Hashtags,
    Event,
}

#[derive(Debug, Clone)]
struct Place {
    tag: u32,
    bytes: Range<usize>,
}

/// Where a tweet's part of each array ends; it begins where the previous tweet's part ends.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    text: usize,
    words: usize,
    tags: usize,
    places: usize,
}

#[derive(Debug, Default)]
pub(super) struct Tweets {
    text: String,
    words: Vec<u32>,
    tags: Vec<u32>,
    places: Vec<Place>,
    events: Vec<u32>,
    times: Vec<i64>,
    ends: Vec<Ends>,
}

impl Tweets {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn time(&self, tweet: u32) -> i64 {
        self.times[tweet as usize]
    }

    pub(super) fn words(&self, tweet: u32) -> &[u32] {
        let (from, to) = self.share(tweet);
        &self.words[from.words..to.words]
    }

    pub(super) fn tags(&self, tweet: u32) -> &[u32] {
        let (from, to) = self.share(tweet);
        &self.tags[from.tags..to.tags]
    }

    pub(super) fn keys(&self, key: Key, tweet: u32) -> &[u32] {
        match key {
            Key::Hashtags => self.tags(tweet),
            Key::Event => std::slice::from_ref(&self.events[tweet as usize]),
        }
    }

    pub(super) fn write_text(&self, tweet: u32, other: u32, out: &mut String) {
        let (from, to) = self.share(tweet);
        let text = &self.text[from.text..to.text];
        out.clear();
        let mut add = |piece: &str| {
            let space = if out.is_empty() || piece.trim_ascii().is_empty() { "" } else { " " };
            out.push_str(space);
            out.push_str(piece.trim_ascii());
        };
        let mut written = 0;
        for Place { tag, bytes } in &self.places[from.places..to.places] {
            if self.tags(other).binary_search(tag).is_ok() {
                add(&text[written..bytes.start]);
                written = bytes.end;
            }
        }
        add(&text[written..]);
    }

    fn share(&self, tweet: u32) -> (Ends, Ends) {
        let before = (tweet as usize).checked_sub(1).map(|before| self.ends[before]);
        (before.unwrap_or_default(), self.ends[tweet as usize])
    }
}

#[derive(Debug, Default)]
struct Names {
    ids: HashMap<Box<str>, u32>,
}

impl Names {
    fn id(&mut self, name: &str) -> Result<u32, String> {
        if let Some(&id) = self.ids.get(name) {
            return Ok(id);
        }
        let id =
            u32::try_from(self.ids.len()).map_err(|_| "too many different words".to_owned())?;
        self.ids.insert(name.into(), id);
        Ok(id)
    }
}

/// Reads tweets; holds the state that pairing does not need.
pub(super) struct Reader<'o> {
    key: Key,
    rules: &'o Normalisation,
    texts: Texts,
    /// Rules for finding words and hashtags, independent of those for writing texts.
    finding: Normalisation,
    tokens: Tokens,
    found: Tokens,
    names: Names,
    events: Names,
    seen: HashSet<u128>,
    text: String,
    words: Vec<u32>,
    /// Parts of the input that are hashtags, with their numbers, or that are left out.
    cuts: Vec<(Range<u32>, Option<u32>)>,
    places: Vec<Place>,
}

impl<'o> Reader<'o> {
    pub(super) fn new(key: Key, rules: &'o Normalisation, texts: Texts) -> Self {
        let paper = Normalisation::preset("deboom").expect("the preset is in the list of presets");
        Self {
            key,
            rules,
            texts,
            finding: Normalisation { hashtags: Hashtags::Keep, ..paper },
            tokens: Tokens::new(),
            found: Tokens::new(),
            names: Names::default(),
            events: Names::default(),
            seen: HashSet::new(),
            text: String::new(),
            words: Vec::new(),
            cuts: Vec::new(),
            places: Vec::new(),
        }
    }

    pub(super) fn read(&mut self, row: &Row<'_>, tweets: &mut Tweets) -> Result<Outcome, String> {
        if self.find(&row.text)? < FEWEST_WORDS {
            return Ok(Outcome::TooShort);
        }
        self.normalise(&row.text);
        if self.text.len() > TEXT_BYTES {
            return Ok(Outcome::TooLong);
        }
        let without = match self.key {
            Key::Hashtags => self.cuts.iter().all(|(_, tag)| tag.is_none()),
            Key::Event => row.event.trim().is_empty(),
        };
        if without {
            return Ok(Outcome::WithoutKey);
        }
        if !self.seen.insert(xxh3_128(self.text.as_bytes())) {
            return Ok(Outcome::Repeated);
        }
        if u32::try_from(tweets.len() + 1).is_err() {
            return Err("too many tweets".to_owned());
        }
        let from = tweets.tags.len();
        tweets.tags.extend(self.cuts.iter().filter_map(|(_, tag)| *tag));
        sort_distinct(&mut tweets.tags, from);
        let from = tweets.words.len();
        tweets.words.append(&mut self.words);
        sort_distinct(&mut tweets.words, from);
        match self.texts {
            Texts::Normalised => tweets.text.push_str(&self.text),
            Texts::AsTheyAre => self.keep(&row.text, &mut tweets.text),
        }
        tweets.places.append(&mut self.places);
        tweets.times.push(row.time);
        tweets.events.push(self.events.id(row.event.trim())?);
        tweets.ends.push(Ends {
            text: tweets.text.len(),
            words: tweets.words.len(),
            tags: tweets.tags.len(),
            places: tweets.places.len(),
        });
        Ok(Outcome::Kept)
    }

    fn find(&mut self, input: &str) -> Result<usize, String> {
        text::tokenise(&self.finding, input, &mut self.found);
        self.words.clear();
        self.cuts.clear();
        for (name, token) in self.found.iter() {
            let tag = match token.kind {
                Kind::Hashtag if GENERAL.contains(&name) => None,
                Kind::Hashtag => Some(self.names.id(name)?),
                // Also the second `RT` of a retweeted retweet.
                Kind::Word if name == "rt" && self.words.is_empty() => None,
                Kind::Word | Kind::Number => {
                    self.words.push(self.names.id(name)?);
                    continue;
                }
                _ => continue,
            };
            self.cuts.push((token.span.clone(), tag));
        }
        Ok(self.words.len())
    }

    /// Adds a tweet's text unchanged and records the positions of its hashtags. Line breaks and
    /// tabs, which would end a row or column, become as many spaces, so that positions stay valid.
    fn keep(&mut self, input: &str, text: &mut String) {
        for c in input.chars() {
            match c.is_control() {
                true => text.extend(std::iter::repeat_n(' ', c.len_utf8())),
                false => text.push(c),
            }
        }
        let tags = self.cuts.iter().filter_map(|(cut, tag)| Some((cut, (*tag)?)));
        self.places.clear();
        self.places.extend(
            tags.map(|(cut, tag)| Place { tag, bytes: cut.start as usize..cut.end as usize }),
        );
    }

    /// Joins the remaining tokens and records which of them are hashtags.
    fn normalise(&mut self, input: &str) {
        text::tokenise(self.rules, input, &mut self.tokens);
        self.text.clear();
        self.places.clear();
        let mut cuts = self.cuts.iter().peekable();
        for (name, token) in self.tokens.iter() {
            let at = token.span.start;
            while cuts.next_if(|(cut, _)| cut.end <= at).is_some() {}
            let cut = cuts.peek().filter(|(cut, _)| cut.start <= at);
            if matches!(cut, Some((_, None))) {
                continue;
            }
            if !self.text.is_empty() {
                self.text.push(' ');
            }
            let start = self.text.len();
            self.text.push_str(name);
            if let Some((_, Some(id))) = cut {
                self.places.push(Place { tag: *id, bytes: start..self.text.len() });
            }
        }
    }
}

/// Sorts the values from index `from` onwards and removes repeats.
fn sort_distinct(values: &mut Vec<u32>, from: usize) {
    values[from..].sort_unstable();
    let mut kept = from;
    for place in from..values.len() {
        if kept == from || values[kept - 1] != values[place] {
            values[kept] = values[place];
            kept += 1;
        }
    }
    values.truncate(kept);
}
