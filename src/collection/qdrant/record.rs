//! The record of a collection: one point of the Qdrant collection `cognate`, which says what the collection
//! has. It is overwritten only where it is still as it was read.

use qdrant_client::Payload;
use qdrant_client::qdrant::Condition;
use qdrant_client::qdrant::DeletePoints;
use qdrant_client::qdrant::Filter;
use qdrant_client::qdrant::GetPoints;
use qdrant_client::qdrant::NamedVectors;
use qdrant_client::qdrant::PointId;
use qdrant_client::qdrant::PointStruct;
use qdrant_client::qdrant::PointsIdsList;
use qdrant_client::qdrant::PointsSelector;
use qdrant_client::qdrant::RetrievedPoint;
use qdrant_client::qdrant::ScrollPoints;
use qdrant_client::qdrant::SetPayloadPoints;
use qdrant_client::qdrant::UpdateMode;
use qdrant_client::qdrant::UpsertPoints;
use qdrant_client::qdrant::points_selector::PointsSelectorOneOf;
use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::collection::CollectionError;
use crate::collection::Settings;
use crate::collection::qdrant::asking::Asking;
use crate::collection::qdrant::numbers::Numbers;

/// The Qdrant collection of records; those of items have its name before theirs.
pub(super) const REGISTRY: &str = "cognate";
/// Who writes to a collection to which nobody does.
pub(super) const NOBODY: &str = "nobody";
/// Names of writes that a record keeps.
const MOST_COMMITS: usize = 8;
/// Records that are read at a time.
const PAGE: u32 = 1000;

/// The record of a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Tells it from other points of the registry.
    pub(super) kind: String,
    pub(super) name: String,
    /// Tells the collection from others that had its name before.
    pub(super) uid: String,
    /// Whether its Qdrant collection was made.
    pub(super) ready: bool,
    pub(super) settings: Settings,
    /// The number of the next item. Points of this number and above are nothing yet.
    pub(super) next: u64,
    /// Points below this number are gone.
    pub(super) first: u64,
    /// How many items there are, those included that are too old.
    pub(super) items: usize,
    /// Counts changes in any other way than by items that were added or became too old or too many.
    pub(super) revision: u64,
    /// The numbers of points that are gone and were not deleted yet.
    pub(super) gone: Numbers,
    /// Counts how often such numbers were forgotten.
    pub(super) swept: u64,
    /// Where another writer may have left what was never written.
    pub(super) gaps: Vec<Gap>,
    /// Who writes, and a number that changes while it is alive.
    pub(super) writer: String,
    pub(super) beat: u64,
    /// The name of the last write, and of some before it in order.
    pub(super) commit: String,
    pub(super) before: Vec<String>,
}

/// Numbers that belong to no item, from the first on and below the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Gap {
    pub(super) from: u64,
    pub(super) to: u64,
    /// When it was found, in milliseconds since 1970.
    pub(super) since: i64,
}

impl Record {
    /// The record of a new collection.
    pub(super) fn new(name: &str, uid: &str, settings: Settings) -> Self {
        Self {
            kind: "collection".to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            ready: false,
            settings,
            next: 0,
            first: 0,
            items: 0,
            revision: 0,
            gone: Numbers::default(),
            swept: 0,
            gaps: Vec::new(),
            writer: NOBODY.to_owned(),
            beat: 0,
            commit: format!("{uid}-made"),
            before: Vec::new(),
        }
    }

    /// Gives the next write its name.
    pub(super) fn name_commit(&mut self, commit: String) {
        self.before.push(std::mem::replace(&mut self.commit, commit));
        let many = self.before.len().saturating_sub(MOST_COMMITS);
        self.before.drain(..many);
    }

    /// Whether the write of this name was done, as far as is known here.
    pub(super) fn has(&self, commit: &str) -> bool {
        self.commit == commit || self.before.iter().any(|before| before == commit)
    }

    /// The Qdrant collection of its items. No name of a collection has the character `@`.
    pub(super) fn place(&self) -> String {
        format!("{REGISTRY}-{}@{}", self.name, self.uid)
    }

    fn point(&self) -> PointId {
        id_of(&["collection", &self.name])
    }

    /// What only this collection's record matches, as long as this is the writer.
    fn of_writer(&self, writer: &str) -> Vec<Condition> {
        vec![
            Condition::has_id([self.point()]),
            Condition::matches("uid", self.uid.clone()),
            Condition::matches("writer", writer.to_owned()),
        ]
    }
}

/// The record of the collection of this name, ready or not.
pub(super) fn look(asking: &Asking, name: &str) -> Result<Option<Record>, CollectionError> {
    read(asking, id_of(&["collection", name]))
}

/// The record of the collection of this name.
pub(super) fn find(asking: &Asking, name: &str) -> Result<Record, CollectionError> {
    let found = look(asking, name)?.filter(|record| record.ready);
    found.ok_or(CollectionError::Unknown)
}

/// The records of all collections by name, ready or not.
pub(super) fn all(asking: &Asking) -> Result<Vec<Record>, CollectionError> {
    let mut records: Vec<Record> = Vec::new();
    let mut offset = None;
    loop {
        let asked = ScrollPoints {
            collection_name: REGISTRY.to_owned(),
            filter: Some(Filter::must([Condition::matches("kind", "collection".to_owned())])),
            offset,
            limit: Some(PAGE),
            with_payload: Some(true.into()),
            ..ScrollPoints::default()
        };
        let page = asking.ask(async |client| client.scroll(asked.clone()).await)?;
        for point in page.result {
            records.push(payload_of(point)?);
        }
        offset = page.next_page_offset;
        if offset.is_none() {
            break;
        }
    }
    records.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(records)
}

/// Adds the record of a collection, if there is none of its name; the one that is there then.
pub(super) fn insert(asking: &Asking, record: &Record) -> Result<Record, CollectionError> {
    add(asking, record.point(), record)?;
    look(asking, &record.name)?.ok_or(CollectionError::Unknown)
}

/// Puts a record in the place of another, if that is still there.
pub(super) fn swap(asking: &Asking, was: &Record, record: &Record) -> Result<(), CollectionError> {
    let mut still = was.of_writer(&was.writer);
    still.push(Condition::matches("commit", was.commit.clone()));
    let asked = set(record, Filter::must(still))?;
    let swapped = asking.change(async |client| client.overwrite_payload(asked.clone()).await);
    let found = look(asking, &record.name);
    let problem = match (swapped, found) {
        (_, Ok(Some(found))) if found.has(&record.commit) => return Ok(()),
        (Ok(_), Ok(None)) => return Err(CollectionError::Unknown),
        // Another write came after that which is known here, so this one did not.
        (Ok(_), Ok(Some(found))) if found.has(&was.commit) || found.uid != was.uid => {
            return Err(other_writer());
        }
        (Ok(_), Ok(Some(_))) => "others wrote meanwhile, and too much to tell".to_owned(),
        // It may still be on its way.
        (Err(error), _) | (Ok(_), Err(error)) => error.to_string(),
    };
    Err(CollectionError::Uncertain { problem })
}

/// The refusal of whoever is not the writer.
pub(super) fn other_writer() -> CollectionError {
    let problem = "another server writes to this collection, or did so until some seconds ago; one \
                   writes at a time";
    CollectionError::OtherWriter { problem: problem.to_owned() }
}

/// Shows that a writer is alive.
pub(super) fn beat(asking: &Asking, record: &Record, beat: u64) -> Result<(), CollectionError> {
    let filter = Filter::must(record.of_writer(&record.writer));
    let asked = set(&json!({"beat": beat}), filter)?;
    asking.change(async |client| client.set_payload(asked.clone()).await)?;
    Ok(())
}

/// Takes the record of a collection out, with those of its vectors.
pub(super) fn remove(asking: &Asking, record: &Record) -> Result<(), CollectionError> {
    let this = Filter::must([
        Condition::has_id([record.point()]),
        Condition::matches("uid", record.uid.clone()),
    ]);
    let vectors = Filter::must([Condition::matches("of", record.uid.clone())]);
    for filter in [this, vectors] {
        delete(asking, REGISTRY, PointsSelectorOneOf::Filter(filter))?;
    }
    Ok(())
}

/// What a point of the registry says, if it is there.
pub(super) fn read<T: DeserializeOwned>(
    asking: &Asking,
    point: PointId,
) -> Result<Option<T>, CollectionError> {
    let asked = GetPoints {
        collection_name: REGISTRY.to_owned(),
        ids: vec![point],
        with_payload: Some(true.into()),
        ..GetPoints::default()
    };
    let found = asking.ask(async |client| client.get_points(asked.clone()).await)?;
    found.result.into_iter().next().map(payload_of).transpose()
}

/// Adds a point of the registry, if it is not there.
pub(super) fn add(
    asking: &Asking,
    point: PointId,
    says: &impl Serialize,
) -> Result<(), CollectionError> {
    let point = PointStruct {
        id: Some(point),
        payload: payload(says)?.into(),
        vectors: Some(NamedVectors::default().into()),
    };
    let asked = UpsertPoints {
        collection_name: REGISTRY.to_owned(),
        wait: Some(true),
        points: vec![point],
        update_mode: Some(UpdateMode::InsertOnly.into()),
        ..UpsertPoints::default()
    };
    asking.change(async |client| client.upsert_points(asked.clone()).await)?;
    Ok(())
}

/// What overwrites the payload of the points of the registry that a filter admits, or adds to it.
pub(super) fn set(
    says: &impl Serialize,
    filter: Filter,
) -> Result<SetPayloadPoints, CollectionError> {
    Ok(SetPayloadPoints {
        collection_name: REGISTRY.to_owned(),
        wait: Some(true),
        payload: payload(says)?.into(),
        points_selector: Some(selector(PointsSelectorOneOf::Filter(filter))),
        ..SetPayloadPoints::default()
    })
}

/// Deletes points.
pub(super) fn delete(
    asking: &Asking,
    place: &str,
    points: PointsSelectorOneOf,
) -> Result<(), CollectionError> {
    let asked = DeletePoints {
        collection_name: place.to_owned(),
        wait: Some(true),
        points: Some(selector(points)),
        ..DeletePoints::default()
    };
    asking.change(async |client| client.delete_points(asked.clone()).await)?;
    Ok(())
}

/// Points by their ids.
pub(super) fn these(ids: Vec<PointId>) -> PointsSelectorOneOf {
    PointsSelectorOneOf::Points(PointsIdsList { ids })
}

fn selector(points: PointsSelectorOneOf) -> PointsSelector {
    PointsSelector { points_selector_one_of: Some(points) }
}

/// The id of a point of the registry, made of what it is about.
pub(super) fn id_of(about: &[&str]) -> PointId {
    let mut hasher = blake3::Hasher::new();
    for part in about {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut written = hasher.finalize().to_hex().to_string();
    written.truncate(32);
    // As a UUID is written.
    for place in [20, 16, 12, 8] {
        written.insert(place, '-');
    }
    written.into()
}

fn payload(says: &impl Serialize) -> Result<Payload, CollectionError> {
    let written = serde_json::to_value(says);
    let written = written.map_err(|error| unreadable(&error))?;
    Payload::try_from(written).map_err(|error| unreadable(&error))
}

/// What a point of the registry says.
pub(super) fn payload_of<T: DeserializeOwned>(point: RetrievedPoint) -> Result<T, CollectionError> {
    Payload::from(point.payload).deserialize().map_err(|error| unreadable(&error))
}

fn unreadable(error: &dyn std::error::Error) -> CollectionError {
    let problem = format!("a point of `{REGISTRY}` is not what this program writes: {error}");
    CollectionError::Database { problem }
}
