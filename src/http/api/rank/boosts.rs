//! What counts of the items of a collection beside how alike they are, as a request asks for it.

use std::borrow::Cow;

use cognate_collections::{ItemBoost, ItemBoosts, MAX_BOOSTS};
use cognate_files::instant;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::error::{ApiError, Code, Detail, Pointer, Result};
use crate::http::request::fields::{List, Score, Share};

/// What scores of a collection's items are changed by: how new an item is, or a number among its attributes.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub(crate) struct ItemBoostFields<'b> {
    /// A time as `30d` or `12h`, after which an item's boost is half of what it was: 1 at its own time. Give
    /// either this or `attribute`.
    #[schema(value_type = Option<String>)]
    half_life: Option<Cow<'b, str>>,
    /// The name of an attribute, which is a number from 0 to 1, or any number where `half` is given; 0 for
    /// an item without it.
    #[schema(value_type = Option<String>)]
    attribute: Option<Cow<'b, str>>,
    /// The number of the attribute at which the boost is one half: it is `number / (number + half)`.
    #[schema(value_type = Option<f64>, exclusive_minimum = 0)]
    half: Option<Score>,
    /// The share of the score that is this boost.
    weight: Share,
}

impl ItemBoostFields<'_> {
    /// The boost, or which field of it is wrong and why.
    fn read(&self) -> Result<ItemBoost, (Code, &'static str, Detail)> {
        let wrong = Code::InvalidField;
        match (&self.half_life, &self.attribute, self.half) {
            (Some(half_life), None, None) => {
                let expected = || format!("expected {}", instant::LASTING_SPANS);
                let half_life = instant::lasting_span(half_life)
                    .ok_or_else(|| (wrong, "half_life", expected().into()))?;
                Ok(ItemBoost::Time { half_life })
            }
            (None, Some(name), _) if name == "time" => {
                Err((wrong, "attribute", "how new an item is, is raised by `half_life`".into()))
            }
            (None, Some(_), Some(Score(half))) if half <= 0.0 => {
                Err((Code::OutOfRange, "half", "expected a number above 0".into()))
            }
            (None, Some(name), half) => {
                let half = half.map(|Score(half)| half);
                Ok(ItemBoost::Attribute { name: name.as_ref().into(), half })
            }
            (Some(_), None, Some(_)) => {
                Err((wrong, "half", "this stands beside `attribute` alone".into()))
            }
            _ => Err((wrong, "attribute", "a boost has either `half_life` or `attribute`".into())),
        }
    }
}

/// The requested boosts, if any. They rank alone, or leave a share to similarity.
pub(crate) fn item_boosts(
    list: &List<ItemBoostFields<'_>>,
    rank_alone: bool,
) -> Result<Option<ItemBoosts>> {
    if list.length > MAX_BOOSTS {
        let code = Code::TooManyItems;
        return Err(ApiError::beyond(code, "/boosts", "boosts", MAX_BOOSTS, list.length));
    }
    let boost = |(place, fields): (usize, &ItemBoostFields<'_>)| {
        let boost = fields.read().map_err(|(code, field, detail)| {
            ApiError::at(code, Pointer::from("/boosts").index(place).field(field), detail)
        })?;
        Ok((boost, fields.weight.0 as f32))
    };
    let boosts = list.items.iter().enumerate().map(boost).collect::<Result<_>>()?;
    let boosts = ItemBoosts(boosts);
    if !rank_alone && boosts.rest() <= 0.0 {
        let detail = "the weights of boosts add up to less than 1: the rest is similarity";
        return Err(ApiError::at(Code::OutOfRange, "/boosts", detail));
    }
    Ok(Some(boosts).filter(|boosts| !boosts.0.is_empty()))
}
