//! Which two tweets make a pair.
//!
//! Related pairs are drawn in rounds: in each, every tweet in turn draws one partner, and all
//! that share a hashtag with it within its minutes are as likely. So a burst of thousands gives no
//! tweet more than its round, and a limit is spread over all. Non-related pairs are drawn from
//! the tweets of the related ones, each as often as it stands there, so that no text gives its label
//! away; only those left over at the end take partners from all tweets.

use std::collections::HashSet;
use std::ops::Range;

use cognate_files::progress::Progress;
use cognate_kernels::random::Random;

use crate::pairs::Rejections;
use crate::pairs::tweets::store::{Key, Tweets};

/// Partners that a tweet draws before it gives up.
const DRAWS: usize = 64;

/// Tweets, what was drawn of them, and why not more.
pub(super) struct Pairing<'t> {
    tweets: &'t Tweets,
    key: Key,
    milliseconds: i64,
    per_tweet: u32,
    /// Tweets under what they are about, each such group by time.
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

    /// At most `wanted` related pairs, in the order in which they were drawn.
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
            // Who found nobody will find nobody later: partners only become fewer.
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

    /// As many non-related pairs, or fewer where tweets do not give them.
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

    /// One of the tweets that may be related to this one.
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
            self.belong(tweet, other, key, uses).then_some(other)
        })?;
        self.pairs.insert(ordered(tweet, partner));
        Some(partner)
    }

    /// The tweets of a group within the minutes of this one.
    fn window(&self, key: u32, tweet: u32) -> Range<usize> {
        let time = self.tweets.time(tweet);
        let earliest = (key, time.saturating_sub(self.milliseconds));
        let latest = (key, time.saturating_add(self.milliseconds));
        let at = |&(key, tweet): &(u32, u32)| (key, self.tweets.time(tweet));
        let from = self.groups.partition_point(|entry| at(entry) < earliest);
        from..self.groups.partition_point(|entry| at(entry) <= latest)
    }

    /// Whether two tweets within the minutes, found under `key`, are related.
    fn belong(&mut self, one: u32, other: u32, key: u32, uses: &[u32]) -> bool {
        let (first, second) = (self.tweets.keys(self.key, one), self.tweets.keys(self.key, other));
        // Two that share several hashtags are met under each, and would be drawn more often.
        if one == other || common(first, second).next() != Some(key) {
            return false;
        }
        let shared = common(first, second).count();
        let words = [self.tweets.words(one), self.tweets.words(other)];
        let rejected = &mut self.related_rejected;
        let reason = if uses[other as usize] >= self.per_tweet {
            &mut rejected.used_up
        } else if self.pairs.contains(&ordered(one, other)) {
            &mut rejected.repeated
        } else if 2 * shared < first.len() + second.len() - shared {
            &mut rejected.hashtags
        } else if alike(words) {
            &mut rejected.words
        } else {
            return true;
        };
        *reason += 1;
        false
    }

    /// Whether two tweets are non-related.
    fn apart(&mut self, one: u32, other: u32, uses: &[u32]) -> bool {
        if one == other {
            return false;
        }
        let keys = [one, other].map(|tweet| self.tweets.keys(self.key, tweet));
        let tags = [one, other].map(|tweet| self.tweets.tags(tweet));
        let words = [one, other].map(|tweet| self.tweets.words(tweet));
        let meet = |[one, other]: [&[u32]; 2]| common(one, other).next().is_some();
        let rejected = &mut self.non_related_rejected;
        let reason = if [one, other].iter().any(|&tweet| uses[tweet as usize] >= self.per_tweet) {
            &mut rejected.used_up
        } else if self.pairs.contains(&ordered(one, other)) {
            &mut rejected.repeated
        } else if meet(keys) || meet(tags) {
            &mut rejected.hashtags
        } else if alike(words) {
            &mut rejected.words
        } else {
            return true;
        };
        *reason += 1;
        false
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

/// The values that both have; either is in order and has each once.
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

/// Places below `total` to look at: each once where there are few.
fn draws(total: usize, random: &mut Random) -> Vec<usize> {
    if total > DRAWS {
        return (0..DRAWS).map(|_| random.below(total)).collect();
    }
    let mut places: Vec<usize> = (0..total).collect();
    random.shuffle(&mut places);
    places
}
