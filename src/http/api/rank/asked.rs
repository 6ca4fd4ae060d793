//! What a request asks: one query, several, or liked texts; and which of its fields do not go together.

use cognate::engine::{Liked, Likes, Place};
use cognate::methods::Kind;

use crate::http::api::pipeline;
use crate::http::api::rank::RankRequest;
use crate::http::app::App;
use crate::http::error::{ApiError, Code};
use crate::http::request::fields::{LikedText, Text, Weight};
use crate::http::request::query::Resolved;
use crate::http::request::threshold::Cutoff;

/// What the best score with a disliked text is multiplied by unless a request says otherwise.
const UNLIKE_WEIGHT: f32 = 0.5;

/// What candidates are compared with.
pub(crate) enum Asked<'r, 'b> {
    Query(&'r Text<'b>),
    /// Several, a ranking each.
    Queries(&'r [Text<'b>]),
    /// Liked texts and disliked ones.
    Likes(Likes<'r>),
}

impl<'b> RankRequest<'b> {
    /// The text that candidates are compared with, where it is one.
    pub(crate) fn query_text(&self) -> &str {
        self.query.as_ref().map_or("", AsRef::as_ref)
    }

    /// What candidates are compared with, or the refusal of fields that do not go together.
    pub(crate) fn asked(&self) -> Result<Asked<'_, 'b>, ApiError> {
        let wrong = |pointer: &'static str, detail: &'static str| {
            Err(ApiError::at(Code::InvalidField, pointer, detail))
        };
        if self.like.is_none() {
            for (field, is_given) in [
                ("/unlike", self.unlike.is_some()),
                ("/strategy", self.strategy.is_some()),
                ("/unlike_weight", self.unlike_weight.is_some()),
            ] {
                if is_given {
                    return wrong(field, "this stands beside `like` alone");
                }
            }
        }
        let unlike = self.unlike.iter().flat_map(|list| &list.items).map(|one| &one.0);
        let like = self.like.iter().flat_map(|list| &list.items);
        for (field, place, one) in like
            .enumerate()
            .map(|(place, one)| ("like", place, one))
            .chain(unlike.enumerate().map(|(place, one)| ("unlike", place, one)))
        {
            if one.id.is_some() {
                let pointer = format!("/{field}/{place}/id");
                let detail = "items are named where `collection` is given";
                return Err(ApiError::at(Code::InvalidField, pointer, detail));
            }
        }
        match (&self.query, &self.queries, &self.like) {
            (Some(query), None, None) => Ok(Asked::Query(query)),
            (None, Some(queries), None) => Ok(Asked::Queries(&queries.items)),
            (None, None, Some(like)) => Ok(Asked::Likes(self.likes(&like.items))),
            (None, None, None) => wrong(
                "",
                "the field `query` is missing; `queries` or `like` may stand in its place",
            ),
            (_, Some(_), _) => wrong("/queries", "give one of `query`, `queries` and `like`"),
            (_, None, Some(_)) => wrong("/like", "give one of `query`, `queries` and `like`"),
        }
    }

    fn likes<'r>(&'r self, like: &'r [LikedText<'b>]) -> Likes<'r> {
        let weight = |liked: &LikedText<'_>| liked.weight.map_or(1.0, |Weight(weight)| weight);
        let liked = |one: &'r LikedText<'b>| Liked { text: one.as_ref(), weight: weight(one) };
        let disliked = self.unlike.iter().flat_map(|list| &list.items);
        Likes {
            liked: like.iter().map(liked).collect(),
            disliked: disliked.map(AsRef::as_ref).collect(),
            strategy: self.strategy.unwrap_or_default().into(),
            unlike_weight: self.unlike_weight.map_or(UNLIKE_WEIGHT, |Weight(weight)| weight),
        }
    }

    /// Refuses lists of texts that are empty or too long.
    pub(crate) fn check_lengths(&self, app: &App) -> Result<(), ApiError> {
        let most = ("max_queries", app.settings.max_queries);
        if let Some(queries) = &self.queries {
            pipeline::check_length("/queries", "queries", queries.length, most)?;
        }
        if let Some(like) = &self.like {
            pipeline::check_length("/like", "liked texts", like.length, most)?;
        }
        if let Some(unlike) = self.unlike.as_ref().filter(|unlike| unlike.length > 0) {
            pipeline::check_length("/unlike", "disliked texts", unlike.length, most)?;
        }
        Ok(())
    }

    /// Refuses what the method cannot do.
    pub(crate) fn check_method(&self, resolved: &Resolved) -> Result<(), ApiError> {
        let only_ranks =
            resolved.fused.is_some() || resolved.query.method.info().kind == Kind::Ranker;
        let method = resolved.method_name();
        if resolved.fused.is_some() && self.queries.is_some() {
            let detail = "rankings are made one for one query: send several queries by themselves";
            return Err(ApiError::at(Code::InvalidField, "/queries", detail));
        }
        let compared = [
            ("/like", self.like.is_some()),
            ("/collapse", self.collapse.is_some()),
            ("/diversify", self.diversify.is_some()),
        ];
        let compared = compared.into_iter().find(|(_, is_given)| *is_given);
        if let Some((pointer, _)) = compared.filter(|_| only_ranks) {
            let detail = format!(
                "`{}` needs a method whose scores say how alike two texts are, and {method} only ranks",
                pointer.trim_start_matches('/')
            );
            return Err(ApiError::at(Code::MethodOnlyRanks, pointer, detail));
        }
        if self.explain == Some(true) {
            if resolved.fused.is_some() {
                let detail = format!("what {method} scores does not divide into words");
                return Err(ApiError::at(Code::MethodUnavailable, "/explain", detail));
            }
            resolved.check_explains().map_err(|error| error.under("/method", "/explain"))?;
        }
        self.least(resolved)?;
        self.sameness(resolved)?;
        Ok(())
    }

    /// From which similarity on a candidate is a duplicate of a better one.
    pub(super) fn sameness(&self, resolved: &Resolved) -> Result<Option<f32>, ApiError> {
        let cutoff = self.collapse.map(|threshold| threshold.resolve(resolved, "/collapse"));
        Ok(cutoff.transpose()?.map(Cutoff::least))
    }

    /// The texts that candidates are compared with, with their places.
    pub(super) fn asked_places(&self) -> impl Iterator<Item = (Place, &str)> + Clone {
        let query = self.query.iter().map(|text| (Place::Query, text.as_ref()));
        let queries = self.queries.iter().flat_map(|list| list.items.iter().enumerate());
        let queries = queries.map(|(index, text)| (Place::QueryOf(index), text.as_ref()));
        let like = self.like.iter().flat_map(|list| list.items.iter().enumerate());
        let like = like.map(|(index, text)| (Place::Liked(index), text.as_ref()));
        let unlike = self.unlike.iter().flat_map(|list| list.items.iter().enumerate());
        let unlike = unlike.map(|(index, text)| (Place::Disliked(index), text.as_ref()));
        query.chain(queries).chain(like).chain(unlike)
    }

    /// How many texts candidates are compared with.
    pub(super) fn asked_length(&self) -> usize {
        let lengths = [
            self.query.iter().len(),
            self.queries.as_ref().map_or(0, |list| list.items.len()),
            self.like.as_ref().map_or(0, |list| list.items.len()),
            self.unlike.as_ref().map_or(0, |list| list.items.len()),
        ];
        lengths.into_iter().sum()
    }
}
