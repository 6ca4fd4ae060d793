//! What a collection has by its record at one moment, which stays readable for some time while others
//! write.

use std::time::Duration;
use std::time::Instant;

use qdrant_client::qdrant::Condition;
use qdrant_client::qdrant::CountPoints;
use qdrant_client::qdrant::Direction;
use qdrant_client::qdrant::Filter;
use qdrant_client::qdrant::OrderBy;
use qdrant_client::qdrant::PointId;
use qdrant_client::qdrant::Query;
use qdrant_client::qdrant::QueryPoints;
use qdrant_client::qdrant::Range;
use qdrant_client::qdrant::RetrievedPoint;
use qdrant_client::qdrant::ScoredPoint;
use qdrant_client::qdrant::ScrollPoints;
use qdrant_client::qdrant::WithPayloadSelector;

use crate::collection::CollectionError;
use crate::collection::qdrant::asking::Asking;
use crate::collection::qdrant::condition::Asked;
use crate::collection::qdrant::numbers::Numbers;
use crate::collection::qdrant::points;
use crate::collection::qdrant::record;
use crate::collection::qdrant::record::Record;

/// How long points stay that are gone.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// How often what takes longer is read.
const ATTEMPTS: usize = 3;
/// Points that are read at a time.
const PAGE: u32 = 2000;

/// A collection by its record.
#[derive(Clone, Copy)]
pub(super) struct Snapshot<'s> {
    pub(super) asking: &'s Asking,
    pub(super) record: &'s Record,
}

/// Reads of a collection as it is at one moment.
pub(super) fn read<T>(
    asking: &Asking,
    name: &str,
    mut question: impl FnMut(Snapshot<'_>) -> Result<T, CollectionError>,
) -> Result<T, CollectionError> {
    for _ in 0..ATTEMPTS {
        let began = Instant::now();
        let record = record::find(asking, name)?;
        let answer = question(Snapshot { asking, record: &record })?;
        // What went after the record was read was there until now.
        if began.elapsed() < GRACE {
            return Ok(answer);
        }
        let after = record::find(asking, name)?;
        let is_same = (&after.uid, after.first, &after.gone, after.swept)
            == (&record.uid, record.first, &record.gone, record.swept);
        if is_same {
            return Ok(answer);
        }
    }
    let problem = "the collection changes faster than it can be read".to_owned();
    Err(CollectionError::Slow { problem })
}

impl Snapshot<'_> {
    /// The items that are there, and of which these conditions hold.
    pub(super) fn filter(&self, more: impl IntoIterator<Item = Condition>) -> Filter {
        let record = self.record;
        let mut must = vec![between(record.first, record.next)];
        must.extend(more);
        let mut must_not: Vec<Condition> =
            record.gaps.iter().map(|gap| between(gap.from, gap.to)).collect();
        must_not.extend(any_of(&record.gone));
        Filter { must, must_not, ..Filter::default() }
    }

    /// How many items there are of which these conditions hold.
    pub(super) fn count(
        &self,
        more: impl IntoIterator<Item = Condition>,
    ) -> Result<usize, CollectionError> {
        let asked = CountPoints {
            collection_name: self.record.place(),
            filter: Some(self.filter(more)),
            exact: Some(true),
            ..CountPoints::default()
        };
        let counted = self.asking.ask(async |client| client.count(asked.clone()).await)?;
        let count = counted.result.map_or(0, |result| result.count);
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// How many items are there that are not older than a time.
    pub(super) fn live(&self, oldest: i64) -> Result<usize, CollectionError> {
        let asked = Asked::not_before(oldest);
        if asked.is_exact {
            return self.count(asked.condition());
        }
        let mut live = 0;
        self.each(asked.condition(), vec!["time"].into(), |point| {
            live += usize::from(points::time(&point.payload)? >= oldest);
            Ok(true)
        })?;
        Ok(live)
    }

    /// The points of which these conditions hold, by number, until `each` wants no more.
    pub(super) fn each(
        &self,
        more: impl IntoIterator<Item = Condition>,
        payload: WithPayloadSelector,
        mut each: impl FnMut(&RetrievedPoint) -> Result<bool, CollectionError>,
    ) -> Result<(), CollectionError> {
        let mut asked = ScrollPoints {
            collection_name: self.record.place(),
            filter: Some(self.filter(more)),
            offset: Some(PointId::from(self.record.first)),
            limit: Some(PAGE),
            with_payload: Some(payload),
            ..ScrollPoints::default()
        };
        loop {
            let page = self.asking.ask(async |client| client.scroll(asked.clone()).await)?;
            for point in &page.result {
                if !each(point)? {
                    return Ok(());
                }
            }
            asked.offset = page.next_page_offset;
            if asked.offset.is_none() {
                return Ok(());
            }
        }
    }

    /// So many of the points of which these conditions hold, by number in this direction.
    pub(super) fn in_order(
        &self,
        more: impl IntoIterator<Item = Condition>,
        direction: Direction,
        (offset, limit): (usize, usize),
    ) -> Result<Vec<ScoredPoint>, CollectionError> {
        let order = OrderBy {
            key: "number".to_owned(),
            direction: Some(direction.into()),
            ..OrderBy::default()
        };
        let asked = QueryPoints {
            collection_name: self.record.place(),
            query: Some(Query::new_order_by(order)),
            filter: Some(self.filter(more)),
            offset: Some(offset as u64),
            limit: Some(limit as u64),
            with_payload: Some(true.into()),
            ..QueryPoints::default()
        };
        Ok(self.asking.ask(async |client| client.query(asked.clone()).await)?.result)
    }
}

/// That a number is at least the first and below the second. Numbers stay below 2^53, up to which Qdrant
/// compares them exactly.
pub(super) fn between(from: u64, to: u64) -> Condition {
    let range = Range { gte: Some(from as f64), lt: Some(to as f64), ..Range::default() };
    Condition::range("number", range)
}

/// That a number is one of these.
pub(super) fn any_of(numbers: &Numbers) -> Vec<Condition> {
    let mut single = Vec::new();
    let mut conditions = Vec::new();
    for &(first, last) in numbers.rows() {
        match first == last {
            true => single.push(first),
            false => conditions.push(between(first, last + 1)),
        }
    }
    if !single.is_empty() {
        conditions.push(Condition::has_id(single));
    }
    conditions
}
