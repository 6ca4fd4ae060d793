//! Vectors of items, with the items, under the fingerprint of their model: made by whoever first asks for
//! a shortlist, searched by Qdrant, exactly or by its index.

use std::collections::BTreeMap;
use std::sync::Arc;

use qdrant_client::qdrant::Condition;
use qdrant_client::qdrant::CreateVectorNameRequest;
use qdrant_client::qdrant::Datatype;
use qdrant_client::qdrant::DeleteVectorNameRequest;
use qdrant_client::qdrant::DenseVectorCreationConfig;
use qdrant_client::qdrant::Distance;
use qdrant_client::qdrant::Filter;
use qdrant_client::qdrant::NamedVectors;
use qdrant_client::qdrant::PointId;
use qdrant_client::qdrant::PointVectors;
use qdrant_client::qdrant::Query as Nearest;
use qdrant_client::qdrant::QueryPoints;
use qdrant_client::qdrant::ScrollPoints;
use qdrant_client::qdrant::SearchParams;
use qdrant_client::qdrant::UpdatePointVectors;
use qdrant_client::qdrant::create_vector_name_request::VectorConfig;
use serde::Deserialize;
use serde::Serialize;
use serde_json::json;

use crate::collection::Cancellation;
use crate::collection::ChooseError;
use crate::collection::Collection;
use crate::collection::CollectionError;
use crate::collection::Item;
use crate::collection::SHORTLIST_METHOD;
use crate::collection::Shortlist;
use crate::collection::Which;
use crate::collection::qdrant::asking::Asking;
use crate::collection::qdrant::collection::QdrantCollection;
use crate::collection::qdrant::collection::admits;
use crate::collection::qdrant::condition::Asked;
use crate::collection::qdrant::home::QdrantHome;
use crate::collection::qdrant::points;
use crate::collection::qdrant::record;
use crate::collection::qdrant::record::REGISTRY;
use crate::collection::qdrant::record::Record;
use crate::collection::qdrant::snapshot;
use crate::collection::qdrant::snapshot::Snapshot;
use crate::engine::Engine;
use crate::engine::Query;
use crate::engine::QueryError;

/// Items whose vectors are made at a time.
const PIECE: usize = 1000;
/// Items of a collection up to which each vector is looked at. Beyond it Qdrant uses its index, once it
/// has made one.
const EXACT: usize = 20_000;

/// What came of making vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Indexed {
    /// Vectors that were made; the others were there.
    pub made: usize,
    /// Models whose vectors were dropped.
    pub dropped: usize,
}

/// A point of the registry: which items of a collection have their vectors by a model.
#[derive(Debug, Serialize, Deserialize)]
struct Made {
    kind: String,
    /// The collection's uid.
    of: String,
    fingerprint: String,
    /// Items of smaller numbers have theirs.
    upto: u64,
    /// Tells these vectors from others that were dropped before.
    uid: String,
}

fn point(record: &Record, fingerprint: &str) -> PointId {
    record::id_of(&["vectors", &record.uid, fingerprint])
}

impl Made {
    /// What is known of the vectors, which become possible if they were not.
    fn find(
        asking: &Asking,
        record: &Record,
        (fingerprint, dims): (&str, usize),
        uid: String,
    ) -> Result<Self, CollectionError> {
        if let Some(known) = record::read(asking, point(record, fingerprint))? {
            return Ok(known);
        }
        let config = DenseVectorCreationConfig {
            size: dims as u64,
            distance: Distance::Cosine.into(),
            datatype: Some(Datatype::Float16.into()),
            ..DenseVectorCreationConfig::default()
        };
        let asked = CreateVectorNameRequest {
            collection_name: record.place(),
            wait: Some(true),
            vector_name: fingerprint.to_owned(),
            vector_config: Some(VectorConfig::DenseConfig(config)),
            ..CreateVectorNameRequest::default()
        };
        asking.change(async |client| client.create_vector_name(asked.clone()).await)?;
        let made = Self {
            kind: "vectors".to_owned(),
            of: record.uid.clone(),
            fingerprint: fingerprint.to_owned(),
            upto: 0,
            uid,
        };
        record::add(asking, point(record, fingerprint), &made)?;
        let made = record::read(asking, point(record, fingerprint))?;
        made.ok_or(CollectionError::Unknown)
    }

    /// More items have theirs.
    fn grow(&self, asking: &Asking, record: &Record, upto: u64) -> Result<(), CollectionError> {
        let still = Filter::must([
            Condition::has_id([point(record, &self.fingerprint)]),
            Condition::matches("uid", self.uid.clone()),
        ]);
        let asked = record::set(&json!({"upto": upto}), still)?;
        asking.change(async |client| client.set_payload(asked.clone()).await)?;
        Ok(())
    }
}

/// The fingerprint of a model and the length of the vectors that find its shortlists.
fn kind_of(engine: &Engine) -> Result<(&str, usize), QueryError> {
    Ok((engine.model().fingerprint(), engine.embedding_dims(SHORTLIST_METHOD)?))
}

/// Vectors by the method of shortlists. One without a direction is near to nothing.
fn embedded(engine: &Engine, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, QueryError> {
    let made = engine.embed(texts, &Query::new(SHORTLIST_METHOD))?;
    let has_direction = |vector: &Vec<f32>| vector.iter().any(|number| *number != 0.0);
    Ok(made.vectors.into_iter().map(|vector| vector.filter(has_direction)).collect())
}

/// Makes the vectors of the next items that have none; how many, and nothing when there are none left.
fn fill(collection: &QdrantCollection, engine: &Engine) -> Result<Option<usize>, ChooseError> {
    let (kind, shared) = (kind_of(engine)?, &collection.shared);
    let asking = &shared.asking;
    let (record, made, items) = snapshot::read(asking, collection.name(), |snapshot| {
        let record = snapshot.record.clone();
        let made = Made::find(asking, &record, kind, shared.next_commit())?;
        let rest = Record { first: record.first.max(made.upto), ..record.clone() };
        let mut items = Vec::new();
        if made.upto < record.next {
            let snapshot = Snapshot { asking, record: &rest };
            snapshot.each([], true.into(), |point| {
                items.push(points::item(point.id.as_ref(), &point.payload)?);
                Ok(items.len() < PIECE)
            })?;
        }
        Ok((record, made, items))
    })?;
    if made.upto >= record.next {
        return Ok(None);
    }
    let texts: Vec<&str> = items.iter().map(|(_, item)| &*item.text).collect();
    let vectors = embedded(engine, &texts)?;
    let numbered = items.iter().map(|(number, _)| *number).zip(vectors);
    let points: Vec<PointVectors> = numbered
        .filter_map(|(number, vector)| {
            let named = NamedVectors { vectors: [(kind.0.to_owned(), vector?.into())].into() };
            Some(PointVectors { id: Some(number.into()), vectors: Some(named.into()) })
        })
        .collect();
    let many = points.len();
    if many > 0 {
        let asked = UpdatePointVectors {
            collection_name: record.place(),
            wait: Some(true),
            points,
            ..UpdatePointVectors::default()
        };
        match asking.change(async |client| client.update_vectors(asked.clone()).await) {
            Ok(_) => {}
            // Some were deleted meanwhile, if it was not the whole collection: those that are there
            // are looked up again.
            Err(CollectionError::Unknown) => {
                record::find(asking, collection.name())?;
                return Ok(Some(0));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let last = items.last().filter(|_| items.len() >= PIECE);
    let upto = last.map_or(record.next, |(number, _)| number + 1);
    made.grow(asking, &record, upto)?;
    Ok(Some(many))
}

/// The items that are nearest to each of the texts of a shortlist, in the order in which they were added.
pub(super) fn nearest(
    collection: &QdrantCollection,
    which: &Which<'_>,
    shortlist: &Shortlist<'_>,
    now: i64,
    cancel: Cancellation<'_>,
) -> Result<Vec<(u64, Arc<Item>)>, ChooseError> {
    let (fingerprint, _) = kind_of(shortlist.engine)?;
    let asked = embedded(shortlist.engine, &shortlist.texts)?;
    let asking = &collection.shared.asking;
    loop {
        let found = snapshot::read(asking, collection.name(), |snapshot| {
            let made: Option<Made> = record::read(asking, point(snapshot.record, fingerprint))?;
            let upto = made.map_or(0, |made| made.upto);
            if upto < snapshot.record.next {
                return Ok(None);
            }
            let oldest = snapshot.record.settings.oldest(now);
            let mut found = BTreeMap::new();
            for vector in asked.iter().flatten() {
                let wanted = (vector.as_slice(), shortlist.length);
                search(snapshot, fingerprint, (which, oldest), wanted, &mut found)?;
            }
            Ok(Some(found))
        })?;
        if let Some(found) = found {
            return Ok(found.into_iter().collect());
        }
        cancel.check()?;
        fill(collection, shortlist.engine)?;
    }
}

/// Finds the items that are nearest to a vector, so many of those that are meant.
fn search(
    snapshot: Snapshot<'_>,
    fingerprint: &str,
    (which, oldest): (&Which<'_>, Option<i64>),
    (vector, length): (&[f32], usize),
    found: &mut BTreeMap<u64, Arc<Item>>,
) -> Result<(), CollectionError> {
    let asked = Asked::of(which, oldest);
    if asked.is_none() {
        return Ok(());
    }
    let filter = snapshot.filter(asked.condition());
    let mut limit = length;
    loop {
        let params = match snapshot.record.items <= EXACT {
            true => SearchParams { exact: Some(true), ..SearchParams::default() },
            false => SearchParams {
                hnsw_ef: Some(limit.clamp(64, 1000) as u64),
                ..SearchParams::default()
            },
        };
        let asked = QueryPoints {
            collection_name: snapshot.record.place(),
            query: Some(Nearest::new_nearest(vector.to_vec())),
            using: Some(fingerprint.to_owned()),
            filter: Some(filter.clone()),
            params: Some(params),
            limit: Some(limit as u64),
            with_payload: Some(true.into()),
            ..QueryPoints::default()
        };
        let near = snapshot.asking.ask(async |client| client.query(asked.clone()).await)?.result;
        let mut items = Vec::with_capacity(length);
        for point in &near {
            let (number, item) = points::item(point.id.as_ref(), &point.payload)?;
            if admits(which, oldest, &item) {
                items.push((number, item));
            }
        }
        // Qdrant may have admitted others, in the places of some that are meant.
        if items.len() >= length || near.len() < limit {
            found.extend(items.into_iter().take(length));
            return Ok(());
        }
        limit = limit.saturating_mul(4);
    }
}

impl QdrantHome {
    /// Makes the vectors of a collection's items; `on_made` is told how many were made so far. With `only`,
    /// vectors of other models are dropped.
    pub fn index(
        &self,
        name: &str,
        engine: &Engine,
        only: bool,
        on_made: &mut dyn FnMut(usize),
    ) -> Result<Indexed, ChooseError> {
        let (collection, (fingerprint, _)) = (self.named(name), kind_of(engine)?);
        let (mut made, mut dropped) = (0, 0);
        while let Some(more) = fill(&collection, engine)? {
            made += more;
            on_made(made);
        }
        let asking = &collection.shared.asking;
        let record = record::find(asking, name)?;
        for other in others(asking, &record, fingerprint)?.iter().filter(|_| only) {
            // Nobody takes them for made any more, and then they go.
            let points = record::these(vec![point(&record, other)]);
            record::delete(asking, REGISTRY, points)?;
            let asked = DeleteVectorNameRequest {
                collection_name: record.place(),
                wait: Some(true),
                vector_name: other.clone(),
                ..DeleteVectorNameRequest::default()
            };
            asking.change(async |client| client.delete_vector_name(asked.clone()).await)?;
            dropped += 1;
        }
        Ok(Indexed { made, dropped })
    }
}

/// The fingerprints of other models by which a collection has vectors.
fn others(
    asking: &Asking,
    record: &Record,
    fingerprint: &str,
) -> Result<Vec<String>, CollectionError> {
    let asked = ScrollPoints {
        collection_name: REGISTRY.to_owned(),
        filter: Some(Filter::must([Condition::matches("of", record.uid.clone())])),
        limit: Some(1000),
        with_payload: Some(true.into()),
        ..ScrollPoints::default()
    };
    let found = asking.ask(async |client| client.scroll(asked.clone()).await)?.result;
    let each = found.into_iter().map(record::payload_of::<Made>);
    let mut all = each.collect::<Result<Vec<_>, _>>()?;
    all.retain(|made| made.fingerprint != fingerprint);
    Ok(all.into_iter().map(|made| made.fingerprint).collect())
}
