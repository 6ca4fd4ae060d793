//! What a question is: what is asked (the same for a body and for all lines of a stream), the items
//! that it is asked of, and the form of the body that brought them. A form is a dialect's, or ours.

use std::pin::Pin;

use cognate::engine::{Counts, Parts, Place, QueryError};

use crate::http::api::cost::{ANSWER_HEAD, Cost};
use crate::http::app::App;
use crate::http::dialect::Dialect;
use crate::http::error::{Pointer, Result};
use crate::http::registry::models::Models;
use crate::http::request::query::{Resolved, estimate};
use crate::http::work::pool::{JobContext, items_per_part};
use crate::http::work::turns::Turn;
use crate::http::work::unsent::Answer;

/// A future that a question waits for; it owns all that it needs.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// A parsed question, before any lookup.
pub(crate) type AnyAsk<'b> = Box<dyn Ask + Send + 'b>;
pub(crate) type AnyPlanned<'b> = Box<dyn Planned + Send + 'b>;

/// A parsed body; it borrows its texts from the bytes.
// Without a lifetime of its own, so that a box of it is covariant and can be stored beside the
// body.
pub(crate) trait Ask {
    /// The dialect of errors, now that the body is known.
    fn dialect(&self) -> Dialect {
        Dialect::Native
    }

    /// The collection that is ranked, if any.
    fn collection(&self) -> Option<&str> {
        None
    }

    /// The threads that plan it: others than the runtime's, if planning takes longer than these can
    /// spare.
    fn threads(&self, _: &App) -> Threads {
        Threads::Here
    }

    /// Waits for the turn to be planned, if questions of this kind are answered one at a time;
    /// holds no thread.
    fn turn(&self) -> Option<BoxFuture<Result<Turn>>> {
        None
    }

    /// Looks up the model, the method and the items, once, and estimates the work.
    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>>
    where
        Self: 'q;
}

/// The threads that a step of a request runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    /// The thread of the runtime that read the body.
    Here,
    Pool,
    /// Threads that wait for another machine.
    Waiting,
    /// Threads for lookups in memory, behind no question that is computed.
    Readers,
    /// Threads that write to a disk and wait for it.
    Writers,
    /// Threads that wait until earlier writes are durable.
    Syncers,
}

pub(crate) struct PlanContext<'c> {
    pub app: &'c App,
    pub models: &'c Models,
    pub job: &'c JobContext,
}

pub(crate) trait Planned {
    fn resolved(&self) -> &Resolved;

    fn cost(&self) -> Cost;

    /// Computes the answer in parts, writes it once, and counts what was read.
    fn answer(
        self: Box<Self>,
        app: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts>;
}

/// A question without its items: a model, a method, and the options of the answer.
pub(crate) trait Asked<I>: Send + Sync {
    type Piece: Parts + Default + Send;

    fn resolved(&self) -> &Resolved;

    /// Fewest and most multiplications for these items, whose texts have so many bytes.
    fn work(&self, items: &[I], bytes: usize) -> [u64; 2];

    fn texts<'q>(&'q self, items: &'q [I]) -> impl Iterator<Item = (Place, &'q str)> + Clone;

    fn ask(&self, items: &[I]) -> Result<Self::Piece, QueryError>;

    fn counts(piece: &Self::Piece) -> Counts;

    /// Number of items of a stream that are computed together.
    fn per_part(&self, items: &[I]) -> usize {
        let bytes = self.bytes(items);
        items_per_part(items.len(), estimate(bytes, self.work(items, bytes)[1]))
    }

    fn bytes(&self, items: &[I]) -> usize {
        self.texts(items).map(|(_, text)| text.len()).sum()
    }
}

/// The format of a body: where it has its items, and how the answer is written.
pub(crate) trait Form<A: Asked<I>, I>: Send + Sync {
    /// The position in the body of an error that the question reports at `pointer`. Before the
    /// items are read only fields can be at fault.
    fn place(&self, pointer: Pointer, _: &[I]) -> Pointer {
        pointer
    }

    fn write(
        &self,
        asked: &A,
        items: &[I],
        whole: &A::Piece,
        answer: &mut Answer<'_>,
    ) -> Result<()>;
}

/// A body: the question, its items, and the format.
pub(crate) struct Batch<A, I, F> {
    asked: A,
    items: Vec<I>,
    form: F,
    cost: Cost,
}

impl<A: Asked<I>, I: Send + Sync, F: Form<A, I>> Batch<A, I, F> {
    /// Weighs a body, or refuses it; each item in the field `list` takes `each` bytes of the
    /// answer.
    pub(crate) fn new(
        (asked, items, form): (A, Vec<I>, F),
        (list, each): (&'static str, usize),
        app: &App,
    ) -> Result<Self> {
        let length = items.len();
        let answer = ANSWER_HEAD + length.saturating_mul(each);
        let bytes = asked.bytes(&items);
        let cost = Cost::new(asked.resolved(), length, bytes, asked.work(&items, bytes), app)
            .and_then(|cost| cost.answering(answer, list, app))?;
        Ok(Self { asked, items, form, cost })
    }

    fn told(&self, app: &App, job: &JobContext, answer: &mut Answer<'_>) -> Result<Counts> {
        let Self { asked, items, form, cost } = self;
        let (resolved, most) = (asked.resolved(), app.settings.tokens_total);
        resolved.check_total(asked.texts(items), most, || job.check())?;
        let whole = job
            .in_parts(items.len(), cost.per_part(), |part| {
                asked.ask(items.get(part).unwrap_or_default())
            })
            .map_err(|error| resolved.explain(error, asked.texts(items)))?;
        let counts = A::counts(&whole);
        Resolved::check_read(counts.tokens as usize, most)?;
        // An answer that is late by now is not written.
        job.check()?;
        form.write(asked, items, &whole, answer)?;
        Ok(counts)
    }
}

impl<A: Asked<I>, I: Send + Sync, F: Form<A, I>> Planned for Batch<A, I, F> {
    fn resolved(&self) -> &Resolved {
        self.asked.resolved()
    }

    fn cost(&self) -> Cost {
        self.cost
    }

    fn answer(
        self: Box<Self>,
        app: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts> {
        let told = self.told(app, job, answer);
        told.map_err(|error| error.renamed(|pointer| self.form.place(pointer, &self.items)))
    }
}
