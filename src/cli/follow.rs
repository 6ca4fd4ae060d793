//! Flags of what follows a stream: how far is looked back, and how the nearest are found.

use clap::Args;
use cognate::engine::Engine;
use cognate::window::events::Rule;
use cognate::window::stream::Settings;
use cognate::window::{Limits, usual};
use cognate_files::instant;

use crate::cli::{Failure, count, usage};

/// Largest window: its vectors alone are a gigabyte for each million texts and 256 dimensions.
const MOST_LAST: u64 = 10_000_000;
/// Most of the nearest that can be asked.
const MOST_NEAREST: u64 = 1000;

#[derive(Debug, Args)]
pub(super) struct FollowArgs {
    /// Texts that are looked back at
    #[arg(long, value_name = "N", default_value_t = usual::LAST,
          value_parser = count::<usize>(1, MOST_LAST))]
    last: usize,
    /// How far is looked back in time, as 30s, 15m, 24h or 7d [default: as far as --last reaches]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    within: Option<i64>,
    /// Method whose vectors find the nearest
    #[arg(long, value_name = "NAME", default_value = "avg-cos")]
    method: String,
    /// Method that scores the nearest once more, or `none`
    #[arg(long, value_name = "NAME", default_value = usual::SECOND)]
    second: String,
    /// How many of the nearest are scored once more and asked for their events
    #[arg(long, value_name = "N", default_value_t = usual::NEAREST,
          value_parser = count::<usize>(1, MOST_NEAREST))]
    nearest: usize,
    /// Texts of an event that must speak for it on average
    #[arg(long, value_name = "N", default_value_t = usual::VOTES,
          value_parser = count::<usize>(1, MOST_NEAREST))]
    votes: usize,
}

/// A span of time in milliseconds.
pub(super) fn duration(text: &str) -> Result<i64, String> {
    let wrong = || "expected a number with s, m, h or d, such as 30s or 24h".to_owned();
    instant::span(text).ok_or_else(wrong)
}

/// A least score, or a share.
pub(super) fn share(text: &str) -> Result<f32, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

impl FollowArgs {
    /// How a stream is followed; the threshold is what was found for the method that scores, unless
    /// `flag` says one.
    pub(super) fn settings(
        &self,
        engine: &Engine,
        centre: f32,
        (flag, threshold): (&str, Option<f32>),
    ) -> Result<Settings, Failure> {
        let named = |name: &str| engine.method(name).map_err(usage);
        let method = named(&self.method)?;
        let second = match self.second.as_str() {
            "none" => None,
            name => Some(named(name)?),
        };
        let scoring = second.unwrap_or(method);
        let known = usual::threshold(scoring);
        let threshold = threshold.or(known).ok_or_else(|| {
            usage(format!(
                "no threshold is known for {}: say one with {flag}; `cognate eval events` finds it \
                 on a labelled stream",
                scoring.name()
            ))
        })?;
        Ok(Settings {
            method,
            second,
            nearest: self.nearest,
            floor: usual::FLOOR,
            rule: Rule { threshold, votes: self.votes, centre },
            limits: Limits { last: self.last, within: self.within },
        })
    }
}
