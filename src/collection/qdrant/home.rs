//! All collections of a Qdrant server.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use qdrant_client::qdrant::CreateCollection;
use qdrant_client::qdrant::CreateFieldIndexCollection;
use qdrant_client::qdrant::DeleteCollection;
use qdrant_client::qdrant::FieldType;
use qdrant_client::qdrant::VectorParamsMap;
use qdrant_client::qdrant::VectorsConfig;
use qdrant_client::qdrant::vectors_config::Config;
use serde::Deserialize;
use serde::Serialize;

use crate::collection::Budget;
use crate::collection::Collection;
use crate::collection::CollectionError;
use crate::collection::Home;
use crate::collection::Limits;
use crate::collection::Settings;
use crate::collection::Totals;
use crate::collection::Write;
use crate::collection::check_name;
use crate::collection::qdrant::asking::Asking;
use crate::collection::qdrant::collection::QdrantCollection;
use crate::collection::qdrant::hold::Line;
use crate::collection::qdrant::points::ATTRIBUTES;
use crate::collection::qdrant::record;
use crate::collection::qdrant::record::NOBODY;
use crate::collection::qdrant::record::REGISTRY;
use crate::collection::qdrant::record::Record;

/// The version of what is kept, told by a point of the registry.
const VERSION: u64 = 1;
/// The oldest server that can do what is asked of it, and so vectors that come later than their points.
const SERVER: (u64, u64) = (1, 18);
/// How long the end of a process waits until what it wrote to is free for others.
const GOODBYE: Duration = Duration::from_secs(3);
/// The fields of the registry by which it is searched.
const OF_REGISTRY: [(&str, FieldType); 5] = [
    ("kind", FieldType::Keyword),
    ("uid", FieldType::Keyword),
    ("writer", FieldType::Keyword),
    ("commit", FieldType::Keyword),
    ("of", FieldType::Keyword),
];
/// And those of a collection.
const OF_ITEMS: [(&str, FieldType); 4] = [
    ("number", FieldType::Integer),
    ("id", FieldType::Keyword),
    ("time", FieldType::Integer),
    (ATTRIBUTES, FieldType::Keyword),
];

/// All collections of a Qdrant server.
#[derive(Debug)]
pub struct QdrantHome {
    pub(super) shared: Arc<Shared>,
}

/// What the collections of a server share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) asking: Arc<Asking>,
    pub(super) limits: Limits,
    /// The memory of windows.
    pub(super) budget: Arc<Budget>,
    /// Who this is among those that write.
    pub(super) writer: String,
    /// Counts what it wrote.
    commits: AtomicU64,
    lines: Mutex<HashMap<Box<str>, Arc<Line>>>,
    /// Collections and items, as they were counted last.
    counted: Mutex<(usize, usize)>,
}

/// What `init` found and made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The version of what is kept before; 0 where there was nothing.
    pub before: usize,
    /// And now.
    pub now: usize,
}

/// A point that says of which version the others are.
#[derive(Serialize, Deserialize)]
struct Versioned {
    kind: String,
    version: u64,
}

impl Shared {
    /// What is known of a collection's name.
    pub(super) fn line(&self, name: &str) -> Arc<Line> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lines.entry(name.into()).or_default())
    }

    /// A name for the next write, which no other has.
    pub(super) fn next_commit(&self) -> String {
        format!("{}-{}", self.writer, self.commits.fetch_add(1, Ordering::Relaxed))
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let lines = std::mem::take(self.lines.get_mut().unwrap_or_else(PoisonError::into_inner));
        let is_held = |line: &Arc<Line>| {
            line.slot.lock().unwrap_or_else(PoisonError::into_inner).hold.is_some()
        };
        let held: Vec<Arc<Line>> = lines.into_values().filter(is_held).collect();
        if held.is_empty() {
            return;
        }
        // The thread that drops this may be one that must not wait for an answer.
        let (asking, writer) = (Arc::clone(&self.asking), self.writer.clone());
        let first = self.commits.load(Ordering::Relaxed);
        let (done, is_done) = mpsc::channel();
        std::thread::spawn(move || {
            for (line, number) in held.iter().zip(first..) {
                let mut slot = line.slot.lock().unwrap_or_else(PoisonError::into_inner);
                // If it cannot be said, others wait until this writer has been silent for long enough.
                let _ = slot.let_go(&asking, format!("{writer}-{number}"));
            }
            let _ = done.send(());
        });
        let _ = is_done.recv_timeout(GOODBYE);
    }
}

impl QdrantHome {
    /// Makes what is needed in the server of a URL, and deletes what a crash left over.
    pub fn init(url: &str) -> Result<Ready, CollectionError> {
        let asking = Asking::new(url, Duration::from_secs(60))?;
        check_server(&asking)?;
        let before = version(&asking)?;
        if before > VERSION {
            return Err(too_new(before));
        }
        make(&asking, REGISTRY, &OF_REGISTRY)?;
        let says = Versioned { kind: "version".to_owned(), version: VERSION };
        record::add(&asking, record::id_of(&["version"]), &says)?;
        delete_left_over(&asking)?;
        let small = |version| usize::try_from(version).unwrap_or(usize::MAX);
        Ok(Ready { before: small(before), now: small(VERSION) })
    }

    /// The collections of the server of a URL, each answer of which may take so long.
    pub fn open(url: &str, limits: Limits, patience: Duration) -> Result<Self, CollectionError> {
        let asking = Arc::new(Asking::new(url, patience)?);
        check_server(&asking)?;
        match version(&asking)? {
            VERSION => {}
            version if version > VERSION => return Err(too_new(version)),
            _ => {
                let problem = format!(
                    "the Qdrant server has no collection `{REGISTRY}`: run `cognate collection init \
                     --qdrant URL`"
                );
                return Err(CollectionError::NotSetUp { problem });
            }
        }
        let shared = Arc::new(Shared {
            asking,
            limits,
            budget: Arc::new(Budget::new(limits.bytes)),
            writer: random()?,
            commits: AtomicU64::new(0),
            lines: Mutex::default(),
            counted: Mutex::default(),
        });
        let home = Self { shared };
        home.names()?;
        Ok(home)
    }

    /// The collection of this name.
    pub(super) fn named(&self, name: &str) -> QdrantCollection {
        QdrantCollection::new(name, Arc::clone(&self.shared))
    }

    /// The names of all collections, whose items are counted and whose writers are looked at on the way.
    fn names(&self) -> Result<Vec<String>, CollectionError> {
        let mut all = record::all(&self.shared.asking)?;
        all.retain(|record| record.ready);
        let items = all.iter().map(|record| record.items).sum();
        *self.shared.counted.lock().unwrap_or_else(PoisonError::into_inner) = (all.len(), items);
        // Of collections that were deleted, here or elsewhere, nothing is kept.
        let is_there = |name: &str| all.iter().any(|record| record.name == name);
        let mut lines = self.shared.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|name, _| is_there(name));
        drop(lines);
        for record in &all {
            if record.writer != NOBODY && record.writer != self.shared.writer {
                self.shared.line(&record.name).is_silent(record);
            }
        }
        Ok(all.into_iter().map(|record| record.name).collect())
    }
}

impl Home for QdrantHome {
    fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Collection>, CollectionError> {
        check_name(name).map_err(|_| CollectionError::Unknown)?;
        Ok(Arc::new(self.named(name)))
    }

    fn all(&self) -> Result<Vec<Arc<dyn Collection>>, CollectionError> {
        let names = self.names()?.into_iter();
        Ok(names.map(|name| Arc::new(self.named(&name)) as Arc<dyn Collection>).collect())
    }

    fn set(
        &self,
        name: &str,
        settings: Settings,
        now: i64,
    ) -> Result<(Arc<dyn Collection>, bool), CollectionError> {
        check_name(name)?;
        self.shared.limits.check_kept(settings)?;
        let most = self.shared.limits.collections;
        let (asking, collection) = (&self.shared.asking, self.named(name));
        let mut found = record::look(asking, name)?;
        if found.as_ref().is_none_or(|record| !record.ready) {
            if self.names()?.len() >= most {
                return Err(CollectionError::TooMany { limit: most });
            }
            // One that a crash left unfinished is finished.
            let there = match found {
                Some(unfinished) => unfinished,
                None => record::insert(asking, &Record::new(name, &random()?, settings))?,
            };
            found = Some(there);
        }
        let Some(there) = found else { return Err(CollectionError::Unknown) };
        if there.ready {
            // What has no age and is as it should be needs no turn to write.
            if there.settings != settings || settings.ttl_ms.is_some() {
                let _ = collection.write(Write::Set(settings), now)?;
            }
            return Ok((Arc::new(collection), false));
        }
        make(asking, &there.place(), &OF_ITEMS)?;
        let mut ready = Record { ready: true, settings, ..there.clone() };
        ready.name_commit(self.shared.next_commit());
        record::swap(asking, &there, &ready)?;
        Ok((Arc::new(collection), true))
    }

    fn delete(&self, name: &str) -> Result<(), CollectionError> {
        check_name(name).map_err(|_| CollectionError::Unknown)?;
        let (asking, line) = (&self.shared.asking, self.shared.line(name));
        let mut slot = line.slot.lock().unwrap_or_else(PoisonError::into_inner);
        let record = record::find(asking, name)?;
        slot.hold = None;
        line.windows.clear();
        // Without its record nobody finds it, so nobody sees how it goes.
        record::remove(asking, &record)?;
        delete(asking, &record.place())
    }

    fn totals(&self, _now: i64) -> Totals {
        let (collections, items) =
            *self.shared.counted.lock().unwrap_or_else(PoisonError::into_inner);
        Totals { collections, items, bytes: self.shared.budget.used(), behind: None }
    }
}

/// Refuses a server that cannot do what is asked of it.
fn check_server(asking: &Asking) -> Result<(), CollectionError> {
    let said = asking.ask(async |client| client.health_check().await)?.version;
    let mut parts = said.split('.').map(|part| part.parse::<u64>().ok());
    let version = (parts.next().flatten(), parts.next().flatten());
    match version {
        (Some(major), Some(minor)) if (major, minor) >= SERVER => Ok(()),
        _ => Err(CollectionError::NotSetUp {
            problem: format!(
                "the Qdrant server has version {said}; {}.{} or newer is needed",
                SERVER.0, SERVER.1
            ),
        }),
    }
}

/// The version of what the server keeps, or 0.
fn version(asking: &Asking) -> Result<u64, CollectionError> {
    match record::read::<Versioned>(asking, record::id_of(&["version"])) {
        Ok(found) => Ok(found.map_or(0, |found| found.version)),
        // There is no such collection of Qdrant.
        Err(CollectionError::Unknown) => Ok(0),
        Err(error) => Err(error),
    }
}

fn too_new(version: u64) -> CollectionError {
    let problem = format!(
        "what the Qdrant server keeps has version {version}, which is newer than this program's \
         {VERSION}"
    );
    CollectionError::NotSetUp { problem }
}

/// Makes a Qdrant collection whose points have no vectors yet, if it is not there, and its indexes.
fn make(asking: &Asking, place: &str, fields: &[(&str, FieldType)]) -> Result<(), CollectionError> {
    if !asking.ask(async |client| client.collection_exists(place).await)? {
        let vectors = Config::ParamsMap(VectorParamsMap::default());
        let asked = CreateCollection {
            collection_name: place.to_owned(),
            vectors_config: Some(VectorsConfig { config: Some(vectors) }),
            // One operation is one operation only where it goes to one shard.
            shard_number: Some(1),
            ..CreateCollection::default()
        };
        let made = asking.ask(async |client| client.create_collection(asked.clone()).await);
        if let Err(error) = made
            && !asking.ask(async |client| client.collection_exists(place).await)?
        {
            return Err(error);
        }
    }
    for (field, kind) in fields {
        let asked = CreateFieldIndexCollection {
            collection_name: place.to_owned(),
            wait: Some(true),
            field_name: (*field).to_owned(),
            field_type: Some((*kind).into()),
            ..CreateFieldIndexCollection::default()
        };
        asking.change(async |client| client.create_field_index(asked.clone()).await)?;
    }
    Ok(())
}

fn delete(asking: &Asking, place: &str) -> Result<(), CollectionError> {
    let asked = DeleteCollection { collection_name: place.to_owned(), ..Default::default() };
    asking.ask(async |client| client.delete_collection(asked.clone()).await)?;
    Ok(())
}

/// Deletes Qdrant collections of items that no record has. A record is there before its Qdrant collection is
/// made and until after it is to go, and these are looked at in the other order.
fn delete_left_over(asking: &Asking) -> Result<(), CollectionError> {
    let there = asking.ask(async |client| client.list_collections().await)?.collections;
    let known: Vec<String> = record::all(asking)?.iter().map(Record::place).collect();
    let prefix = format!("{REGISTRY}-");
    for one in there {
        let is_ours = one.name.starts_with(&prefix) && one.name.contains('@');
        if is_ours && !known.contains(&one.name) {
            delete(asking, &one.name)?;
        }
    }
    Ok(())
}

/// Sixteen digits that nobody else has.
fn random() -> Result<String, CollectionError> {
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).map_err(|error| CollectionError::Database {
        problem: format!("the system has no random numbers: {error}"),
    })?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
