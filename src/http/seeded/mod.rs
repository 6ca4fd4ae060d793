//! Many requests in random order, through the service's own router: questions and streams whose
//! clients send slowly, pause or disconnect at any moment, collections that are written to, read
//! and made anew, models that are replaced meanwhile. A seed fixes the order, so that a failure can
//! be repeated.

mod call;
mod order;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;
use std::{fs, thread};

use axum::Router;
use cognate::engine::{Engine, Query};
use cognate::model::Model;
use cognate::model::format::Dtype;
use cognate_testing::{Chance, full, rounds, seed, tiny};
use tempfile::TempDir;

use crate::http::app::App;
use crate::http::auth::client::{Client, Resource, share_of};
use crate::http::registry::models::LoadedModel;
use crate::http::seeded::call::Call;
use crate::http::seeded::order::Order;
use crate::http::settings::{NamedModel, Settings};
use crate::http::work::file_threads::delays;
use crate::http::work::pool::Pool;

const UNITS: usize = 1024;
const ANSWERS: usize = 1 << 20;
const QUEUE: usize = 8;
const STREAMS: usize = 6;
const SPOOLS: u64 = 256 << 10;
/// How long requests wait for units: so briefly that many wait in vain, and so long that few do.
const PATIENCE: [u64; 2] = [100, 600_000];
/// When a job or a turn is late, in milliseconds: not within a run.
const LATE: u64 = 7_200_000;
/// The most simulated time of a run; it passes only while no task can run.
const WITHIN: Duration = Duration::from_secs(3600);
const SHARE: usize = 50;
const REQUESTS: usize = 24;
const NAMES: [&str; 2] = ["news", "books"];
const PAIRS: [(&str, &str); 3] = [
    ("the quake hits the city", "the earthquake shakes the town"),
    ("new york", "the new town"),
    ("o'neill hits 0", "the city of 0 quakes"),
];

/// A service whose work is done by this thread alone, for many runs.
struct Service {
    app: Arc<App>,
    router: Router,
    /// Two addresses, and the machine's own, whose programs are not counted as clients.
    peers: [IpAddr; 3],
    clients: [Client; 3],
    models: [KnownModel; 2],
    path: PathBuf,
    _folder: TempDir,
}

struct KnownModel {
    bytes: Vec<u8>,
    fingerprint: String,
    scores: Vec<f32>,
}

impl KnownModel {
    fn new(dtype: Dtype) -> Self {
        let bytes = tiny(dtype);
        let engine = Engine::new(Model::from_bytes(&bytes, &full()).unwrap()).unwrap();
        let scores = engine.similarity(&PAIRS, &Query::new(engine.auto())).unwrap().scores;
        Self { bytes, fingerprint: engine.model().fingerprint().to_owned(), scores }
    }
}

impl Service {
    fn new(patience: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let models = [Dtype::F32, Dtype::I8].map(KnownModel::new);
        assert_ne!(models[0].scores, models[1].scores);
        let settings = Settings {
            model: vec![NamedModel { name: "tiny".to_owned(), path: path.clone() }],
            admission_units: UNITS,
            admission_wait_ms: patience,
            compute_queue: QUEUE,
            client_share: SHARE,
            // No job and no turn is late, however slow the machine.
            compute_deadline_ms: LATE,
            unsent_bytes: Some(ANSWERS),
            response_bytes: ANSWERS,
            max_streams: Some(STREAMS),
            stream_spool_bytes: Some(SPOOLS / 2),
            spool_bytes: SPOOLS,
            body_timeout_s: 1,
            write_timeout_s: 1,
            stream_idle_s: 1,
            ..Settings::default()
        };
        let mut app = App::new(settings).unwrap();
        let unshared = Arc::get_mut(&mut app).expect("nobody else has it yet");
        unshared.compute = Pool::of_this_thread(QUEUE, SHARE);
        let peers =
            [[10, 0, 0, 1], [10, 0, 0, 2], [127, 0, 0, 1]].map(|four| Ipv4Addr::from(four).into());
        let clients = peers.map(|peer| app.peers.client(peer));
        Self { router: app.router(), app, peers, clients, models, path, _folder: folder }
    }

    /// Replaces the file of the model.
    fn replace_file(&self, bytes: &[u8]) {
        let beside = self.path.with_extension("new");
        fs::write(&beside, bytes).unwrap();
        fs::rename(beside, &self.path).unwrap();
    }

    /// The index of the served model among the known ones.
    fn served(&self) -> Option<usize> {
        let models = self.app.models();
        let model = models.choose(None).ok()?;
        let known = |known: &KnownModel| model.fingerprint == *known.fingerprint;
        Some(self.models.iter().position(known).expect("a bad model is served"))
    }
}

struct Run {
    service: Rc<Service>,
    answered: Cell<usize>,
    refused: Cell<usize>,
    collections: [Kept; 2],
    /// Orders to replace the models, and the one that is served meanwhile.
    reloads: Changes,
    model: Cell<usize>,
    loaded: RefCell<Vec<Weak<LoadedModel>>>,
}

/// Changes that were begun, and that have not ended. When the client is gone, nobody knows when its
/// change ends.
#[derive(Default)]
struct Changes {
    begun: Cell<usize>,
    open: Cell<usize>,
}

impl Changes {
    /// Whether nothing was changed since the moment when `begun` changes had begun.
    fn none_since(&self, begun: usize) -> bool {
        self.open.get() == 0 && self.begun.get() == begun
    }

    fn begin(&self) {
        self.begun.set(self.begun.get() + 1);
        self.open.set(self.open.get() + 1);
    }

    fn end(&self) {
        self.begun.set(self.begun.get() + 1);
        self.open.set(self.open.get() - 1);
    }
}

#[derive(Default)]
struct Kept {
    /// Orders to delete it.
    changes: Changes,
    /// Acknowledged items, if the collection was not deleted since.
    there: RefCell<BTreeSet<String>>,
    refused: RefCell<BTreeSet<String>>,
}

impl Kept {
    /// Records acknowledged items, if the collection was not deleted since `begun` orders had
    /// begun.
    fn acknowledge(&self, ids: impl IntoIterator<Item = String>, begun: usize) {
        if self.changes.none_since(begun) {
            self.there.borrow_mut().extend(ids);
        }
    }
}

impl Run {
    fn is_over(&self, order: &Order) -> bool {
        order.is_over() && self.service.app.compute.counts() == (0, 0)
    }

    fn check(&self) {
        let Service { app, clients, .. } = &*self.service;
        assert!(app.unsent.in_use().0 <= ANSWERS, "{:?} bytes of answers", app.unsent.in_use());
        assert!(app.admission.in_use() <= UNITS, "{} units", app.admission.in_use());
        assert!(app.streams.in_use().0 <= STREAMS, "{:?} streams", app.streams.in_use());
        assert!(app.spools.in_use().0 <= SPOOLS, "{:?} bytes of files", app.spools.in_use());
        assert!(app.compute.counts().1 <= QUEUE + 1, "{:?} jobs", app.compute.counts());
        for client in clients {
            let units = client.holds(Resource::Units);
            assert!(units <= UNITS / 2, "{units} units are more than a share");
            // One job is done, and the others wait.
            for (what, all) in [
                (Resource::Unsent, ANSWERS),
                (Resource::Streams, STREAMS),
                (Resource::Jobs, QUEUE + 1),
            ] {
                let held = client.holds(what);
                assert!(held <= share_of(all, SHARE), "{held} {what:?} are more than a share");
            }
        }
        if let Ok(model) = self.service.app.models().choose(None) {
            let mut loaded = self.loaded.borrow_mut();
            if loaded.last().is_none_or(|last| last.as_ptr() != Arc::as_ptr(model)) {
                loaded.push(Arc::downgrade(model));
            }
        }
    }

    fn check_end(&self) {
        let Service { app, clients, .. } = &*self.service;
        assert_eq!((app.admission.in_use(), app.admission.waiting()), (0, 0), "units are lost");
        assert_eq!(app.unsent.in_use().0, 0, "bytes are lost");
        assert_eq!((app.streams.in_use().0, app.spools.in_use().0), (0, 0), "streams are lost");
        for client in clients {
            let all = [Resource::Units, Resource::Unsent, Resource::Streams, Resource::Jobs];
            assert_eq!(
                all.map(|what| client.holds(what)),
                [0; 4],
                "a client holds what nobody has"
            );
        }
        let held = self.loaded.borrow().iter().filter(|model| model.strong_count() > 0).count();
        assert_eq!(held, 1, "models are held that are not served");
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Outcome {
    answered: usize,
    refused: usize,
    trace: u64,
}

async fn run(service: Rc<Service>, seed: u64) -> Outcome {
    let mut chance = Chance(seed);
    delays::draw_from(Chance(chance.next()));
    let mut order = Order::new(Chance(chance.next()));
    let run = Rc::new(Run {
        service,
        answered: Cell::default(),
        refused: Cell::default(),
        collections: Default::default(),
        reloads: Changes::default(),
        model: Cell::new(0),
        loaded: RefCell::default(),
    });
    order.begin(Call::new(&run, 0, &mut chance).prepare());
    until_over(&run, &mut order).await;
    order.lossy = true;
    let mut begun = 0;
    while begun < REQUESTS || !run.is_over(&order) {
        if begun < REQUESTS && chance.below(4) == 0 {
            begun += 1;
            order.begin(Call::new(&run, begun, &mut chance).any());
        }
        order.step().await;
        run.check();
    }
    order.lossy = false;
    let (answered, refused) = (run.answered.get(), run.refused.get());
    assert_eq!(answered + refused + order.gone, REQUESTS);
    order.begin(Call::new(&run, 0, &mut chance).clear());
    until_over(&run, &mut order).await;
    run.check_end();
    Outcome { answered, refused, trace: order.trace() }
}

async fn until_over(run: &Run, order: &mut Order) {
    while !run.is_over(order) {
        order.step().await;
        run.check();
    }
}

/// Returns the outcome of each seed; requests wait up to `patience` for units.
fn run_all(patience: u64, seeds: impl Iterator<Item = u64>) -> Vec<Outcome> {
    let service = Rc::new(Service::new(patience));
    let run_one = |seed| {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        // Runs one of its tasks at a time.
        let runtime = runtime.enable_time().start_paused(true).event_interval(1).build().unwrap();
        let run = run(Rc::clone(&service), seed);
        // A request that is never woken would wait for ever.
        let outcome = runtime.block_on(async { tokio::time::timeout(WITHIN, run).await });
        outcome.expect("some request is never woken")
    };
    let outcome = |seed| {
        catch_unwind(AssertUnwindSafe(|| run_one(seed))).unwrap_or_else(|panic| {
            eprintln!("run again with TEST_COGNATE_SEED={seed}");
            resume_unwind(panic)
        })
    };
    seeds.map(outcome).collect()
}

#[test]
fn requests_in_any_order_keep_to_their_bounds_and_leave_nothing_behind() {
    let again = seed();
    let seeds = again.map_or(0..rounds(2_000, 10_000) as u64, |seed| seed..seed + 1);
    let of = |kind: u64| seeds.clone().filter(move |seed| seed % 2 == kind);
    let outcomes = thread::scope(|scope| {
        let both = [0, 1].map(|kind| {
            let seeds = of(kind);
            scope.spawn(move || run_all(PATIENCE[kind as usize], seeds))
        });
        both.map(|one| one.join().unwrap_or_else(|panic| resume_unwind(panic))).concat()
    });
    let sum = |of: fn(&Outcome) -> usize| outcomes.iter().map(of).sum::<usize>();
    let (answered, refused) = (sum(|one| one.answered), sum(|one| one.refused));
    println!("{} seeds: {answered} answered, {refused} refused", outcomes.len());
    if again.is_none() {
        assert!(answered > 10_000 && refused > 1_000, "{answered} answered, {refused} refused");
    }
}

/// A seed repeats the same run, so that a failure can be investigated.
#[test]
fn a_seed_fixes_the_order() {
    for (kind, patience) in PATIENCE.into_iter().enumerate() {
        let run = move || run_all(patience, (0..40).filter(|seed| seed % 2 == kind as u64));
        let [first, again] = [(); 2].map(|()| thread::spawn(run).join().unwrap());
        assert_eq!(first, again);
    }
}
