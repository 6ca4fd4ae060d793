//! Many requests in an order of chance: each of them waits for units, its body, its turn and memory for its
//! answer, and any of them may be gone at any moment. A seed fixes the order, so that a failing one is run again.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use cognate_testing::{Chance, rounds, seed};

use crate::http::auth::client::{Client, Resource};
use crate::http::error::Code;
use crate::http::work::admission::Admission;
use crate::http::work::turns::Turns;
use crate::http::work::unsent::Unsent;

const UNITS: usize = 1024;
const ANSWERS: usize = 1 << 20;
/// How long requests wait for units: so briefly that many wait in vain, and longer than a run may take.
const PATIENCE: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(7200)];
/// The most time of a run, of which none passes while something can go on.
const WITHIN: Duration = Duration::from_secs(3600);
const SHARE: usize = 50;
/// Requests of a run.
const REQUESTS: usize = 24;

/// What requests share.
struct Shared {
    admission: Admission,
    turns: Turns,
    unsent: Unsent,
    clients: [Client; 3],
    answered: Cell<usize>,
    refused: Cell<usize>,
    /// Requests that hold more units than there were, because they were computed already.
    beyond: Cell<usize>,
    /// Requests that have the turn of each collection.
    writes: [Cell<usize>; 2],
}

/// What one request asks for.
struct Request {
    client: usize,
    items: usize,
    body: Duration,
    /// The collection that is written to.
    writes: Option<usize>,
    /// Items that turn out only while it is computed.
    more: usize,
    computes: Duration,
    answer: usize,
    reads: Duration,
}

impl Request {
    fn of(chance: &mut Chance) -> Self {
        let mut span = |most| Duration::from_millis(chance.below(most) as u64);
        let (body, computes, reads) = (span(40), span(120), span(60));
        let items = 1 << (5 + chance.below(6));
        Self {
            client: chance.below(3),
            items: 1 + chance.below(items),
            body,
            writes: chance.below(4).checked_sub(2),
            more: if chance.below(4) == 0 { chance.below(300) } else { 0 },
            computes,
            answer: chance.below(ANSWERS / 4),
            reads,
        }
    }

    async fn run(self, shared: Rc<Shared>) {
        match self.answer(&shared).await {
            Ok(()) => shared.answered.set(shared.answered.get() + 1),
            Err(Code::Overloaded) => shared.refused.set(shared.refused.get() + 1),
            Err(code) => panic!("refused by {code:?}"),
        }
    }

    async fn answer(&self, shared: &Shared) -> Result<(), Code> {
        let client = shared.clients.get(self.client).cloned().unwrap_or_default();
        let unsent = shared.unsent.of(&client);
        let mut permit =
            shared.admission.admit_soon(&client).await.map_err(|refusal| refusal.code)?;
        tokio::time::sleep(self.body).await;
        let more = shared.admission.top_up_soon(&mut permit, self.items).await;
        more.map_err(|refusal| refusal.code)?;
        let turn = match self.writes {
            Some(collection) => {
                let turn = shared.turns.wait(["news", "books"][collection], None).await;
                assert_eq!(shared.writes[collection].get(), 0, "two have the turn of a collection");
                Some((turn, Count::of(&shared.writes[collection])))
            }
            None => None,
        };
        let beyond = (self.more > 0).then(|| {
            shared.admission.charge_running(&mut permit, self.items + self.more);
            Count::of(&shared.beyond)
        });
        let answer = unsent.answer(self.answer).map_err(|refusal| refusal.code)?;
        tokio::time::sleep(self.computes).await;
        drop((turn, permit, beyond));
        let answer = answer.into_bytes();
        tokio::time::sleep(self.reads).await;
        drop(answer);
        Ok(())
    }
}

/// Counts as long as it lives.
struct Count<'c>(&'c Cell<usize>);

impl<'c> Count<'c> {
    fn of(count: &'c Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A request that runs, and whether it asked to be looked at again.
struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    woken: Arc<Woken>,
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl Task {
    fn of(future: impl Future<Output = ()> + 'static) -> Self {
        Self { future: Box::pin(future), woken: Arc::new(Woken(AtomicBool::new(true))) }
    }

    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Acquire)
    }

    /// Whether it has ended.
    fn look(&mut self) -> bool {
        self.woken.0.store(false, Ordering::Release);
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(())
    }
}

/// What holds after every step.
fn check(shared: &Shared) {
    let Shared { admission, unsent, clients, beyond, .. } = shared;
    assert!(unsent.in_use().0 <= ANSWERS, "{} bytes of answers", unsent.in_use().0);
    if beyond.get() == 0 {
        assert!(admission.in_use() <= UNITS, "{} units", admission.in_use());
    }
    for client in clients {
        let units = client.holds(Resource::Units);
        assert!(units <= UNITS / 2 || beyond.get() > 0, "{units} units are more than a share");
        assert!(client.holds(Resource::Unsent) <= ANSWERS / 2, "more bytes than a share");
    }
}

async fn run(seed: u64) -> (usize, usize) {
    let chance = &mut Chance(seed);
    let patience = PATIENCE[seed as usize % PATIENCE.len()];
    let shared = Rc::new(Shared {
        admission: Admission::new(UNITS, 8, patience, SHARE),
        turns: Turns::default(),
        unsent: Unsent::new(ANSWERS, ANSWERS, SHARE),
        // Of one nobody knows who it is.
        clients: [Client::counted(), Client::counted(), Client::default()],
        answered: Cell::default(),
        refused: Cell::default(),
        beyond: Cell::default(),
        writes: Default::default(),
    });
    let (mut tasks, mut begun) = (Vec::<Task>::new(), 0);
    let mut gone = 0;
    while begun < REQUESTS || !tasks.is_empty() {
        let woken: Vec<usize> = (0..tasks.len()).filter(|&at| tasks[at].is_woken()).collect();
        match chance.below(16) {
            0..5 if begun < REQUESTS => {
                tasks.push(Task::of(Request::of(chance).run(Rc::clone(&shared))));
                begun += 1;
            }
            5 if !tasks.is_empty() && chance.below(4) == 0 => {
                drop(tasks.swap_remove(chance.below(tasks.len())));
                gone += 1;
            }
            _ if !woken.is_empty() => {
                let at = woken[chance.below(woken.len())];
                if tasks[at].look() {
                    drop(tasks.swap_remove(at));
                }
            }
            // All of them wait. Time passes in steps, so that whoever is never woken is found.
            _ => tokio::time::advance(Duration::from_millis(1 + chance.below(20) as u64)).await,
        }
        check(&shared);
    }
    let (answered, refused) = (shared.answered.get(), shared.refused.get());
    assert_eq!(answered + refused + gone, REQUESTS);
    assert_eq!((shared.admission.in_use(), shared.admission.waiting()), (0, 0), "units are lost");
    assert_eq!(shared.unsent.in_use().0, 0, "bytes are lost");
    for client in &shared.clients {
        let held = [Resource::Units, Resource::Unsent].map(|what| client.holds(what));
        assert_eq!(held, [0, 0], "a client holds what nobody has");
    }
    (answered, refused)
}

#[test]
fn requests_in_any_order_keep_to_their_bounds_and_leave_nothing_behind() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let again = seed();
    let seeds = match again {
        Some(seed) => seed..seed + 1,
        None => 0..rounds(2_000, 10_000) as u64,
    };
    let (mut answered, mut refused) = (0, 0);
    for seed in seeds.clone() {
        // A request that is never woken would wait for ever.
        let outcome = std::panic::catch_unwind(|| {
            runtime.block_on(async { tokio::time::timeout(WITHIN, run(seed)).await })
        });
        match outcome {
            Ok(Ok(of_run)) => {
                answered += of_run.0;
                refused += of_run.1;
            }
            Ok(Err(_)) => panic!("seed {seed}: some request is never woken"),
            Err(panic) => {
                eprintln!("run again with TEST_COGNATE_SEED={seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{} seeds: {answered} answered, {refused} refused", seeds.count());
    if again.is_none() {
        assert!(answered > 10_000 && refused > 1_000, "{answered} answered, {refused} refused");
    }
}
