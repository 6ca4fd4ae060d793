//! Questions that do not own what they found: they are planned and answered by reference. What is left
//! here goes the one way by [`unplanned`], until it is a [`Batch`](super::question::Batch).

use std::ops::Deref;

use cognate::engine::Counts;

use crate::http::api::cost::Cost;
use crate::http::api::question::{
    AnyAsk, AnyPlanned, Ask, BoxFuture, PlanContext, Planned, Threads,
};
use crate::http::app::App;
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Pointer};
use crate::http::registry::models::Models;
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;
use crate::http::work::turns::Turn;
use crate::http::work::unsent::Answer;

/// A question that was read, to be weighed and answered.
pub(crate) trait Question {
    /// Whether answering waits for another machine.
    fn waits(&self, _: &App) -> bool {
        false
    }

    /// Waits for the turn to be answered, if questions like this are answered one at a time; holds no
    /// thread.
    fn turn(&self) -> Option<BoxFuture<Result<Turn, ApiError>>> {
        None
    }

    /// The dialect of refusals, now that the body is known.
    fn dialect(&self) -> Dialect {
        Dialect::Native
    }

    /// Whether even estimating the work takes longer than a thread of the runtime should be held.
    fn is_long(&self) -> bool {
        false
    }

    /// The collection that is ranked, if one is.
    fn collection(&self) -> Option<&str> {
        None
    }

    /// Looks up the data of a [long](Self::is_long) question before its work is estimated.
    fn look_up(&self, _: &App, _: &Models, _: &JobContext) -> Result<(), ApiError> {
        Ok(())
    }

    /// The place in this body of a fault that a native question has at `pointer`.
    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        pointer
    }

    /// Checks lengths, finds the model and the method, and weighs the work.
    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError>;

    /// Writes the answer as JSON, and returns what was read for it.
    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError>;
}

/// A question that can be answered, and how much work that is.
pub struct Plan {
    pub resolved: Resolved,
    cost: Cost,
}

impl Deref for Plan {
    type Target = Cost;

    fn deref(&self) -> &Cost {
        &self.cost
    }
}

impl Plan {
    /// Weighs a question of `items` items with texts of `bytes` bytes in all, or refuses one that
    /// would certainly be late.
    pub fn new(
        resolved: Resolved,
        items: usize,
        bytes: usize,
        multiplications: u64,
        app: &App,
    ) -> Result<Self, ApiError> {
        Self::at_least(resolved, items, bytes, [multiplications; 2], app)
    }

    /// Weighs a question that may turn out to be less work: the first number of multiplications is
    /// certain, the second the most.
    pub fn at_least(
        resolved: Resolved,
        items: usize,
        bytes: usize,
        multiplications: [u64; 2],
        app: &App,
    ) -> Result<Self, ApiError> {
        let cost = Cost::new(&resolved, items, bytes, multiplications, app)?;
        Ok(Self { resolved, cost })
    }

    /// See [`Cost::answering`].
    pub(crate) fn answering(
        self,
        bytes: usize,
        pointer: &'static str,
        app: &App,
    ) -> Result<Self, ApiError> {
        Ok(Self { cost: self.cost.answering(bytes, pointer, app)?, ..self })
    }

    /// See [`Cost::heavier`].
    pub(crate) fn heavier(self, multiplications: u64, app: &App) -> Result<Self, ApiError> {
        Ok(Self { cost: self.cost.heavier(multiplications, app)?, ..self })
    }

    /// Adds bytes to the answer.
    pub(crate) fn longer(
        self,
        bytes: usize,
        pointer: &'static str,
        app: &App,
    ) -> Result<Self, ApiError> {
        let bytes = self.answer_bytes.saturating_add(bytes);
        self.answering(bytes, pointer, app)
    }
}

struct Old<Q>(Q);

struct OldPlanned<Q>(Q, Plan);

/// A question of the old kind, for the one way.
pub(crate) fn unplanned<'b>(question: impl Question + Send + 'b) -> AnyAsk<'b> {
    Box::new(Old(question))
}

impl<Q: Question + Send> Ask for Old<Q> {
    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }

    fn collection(&self) -> Option<&str> {
        self.0.collection()
    }

    fn turn(&self) -> Option<BoxFuture<Result<Turn, ApiError>>> {
        self.0.turn()
    }

    fn threads(&self, app: &App) -> Threads {
        match (self.0.is_long(), self.0.waits(app)) {
            (false, _) => Threads::Here,
            (true, false) => Threads::Pool,
            (true, true) => Threads::Waiting,
        }
    }

    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>, ApiError>
    where
        Self: 'q,
    {
        let Self(question) = *self;
        let looked_up = question.look_up(context.app, context.models, context.job);
        let plan = looked_up.and_then(|()| question.plan(context.app, context.models));
        match plan {
            Ok(plan) => Ok(Box::new(OldPlanned(question, plan))),
            Err(error) => Err(error.renamed(|pointer| question.pointer_in_body(pointer))),
        }
    }
}

impl<Q: Question + Send> Planned for OldPlanned<Q> {
    fn resolved(&self) -> &Resolved {
        &self.1.resolved
    }

    fn cost(&self) -> Cost {
        self.1.cost
    }

    fn answer(
        self: Box<Self>,
        app: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let Self(question, plan) = *self;
        let counts = question.answer(&plan, app, job, answer);
        counts.map_err(|error| error.renamed(|pointer| question.pointer_in_body(pointer)))
    }
}
