//! Texts ranked for one text, as other dialects request it: with the defaults of all settings that
//! they lack.

use cognate::engine::rank::{Pages, Question};
use cognate::engine::{Candidates, Counts, PageOptions};

use crate::http::api::cost::Cost;
use crate::http::api::question::Planned;
use crate::http::api::rank::run;
use crate::http::app::App;
use crate::http::error::{Pointer, Result};
use crate::http::request::fields::Text;
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// Bytes that an answer adds around each text: `,"text":""`.
pub(super) const TEXT_BYTES: usize = 10;

pub(crate) struct TextRanking<'b> {
    pub(crate) query: Text<'b>,
    pub(crate) texts: Vec<Text<'b>>,
    pub(crate) resolved: Resolved,
    pub(crate) top_k: Option<usize>,
    pub(crate) return_text: bool,
}

impl TextRanking<'_> {
    fn question(&self) -> Question<'_> {
        Question {
            fusion: self.resolved.fused.as_ref().map(|fused| fused.fusion.clone()),
            page: PageOptions { top_k: self.top_k, ..PageOptions::default() },
            ..Question::new(self.query.as_ref(), self.resolved.query)
        }
    }

    pub(crate) fn cost(&self, app: &App) -> Result<Cost> {
        self.resolved.model.engine.check(&self.resolved.query)?;
        let bytes_of =
            |text: &Text<'_>| if self.return_text { TEXT_BYTES + text.as_ref().len() } else { 0 };
        let candidates = Candidates::new(&self.texts);
        run::weigh(&self.question(), &candidates, &self.resolved, (bytes_of, false), app)
    }

    pub(crate) fn pages(&self, cost: &Cost, app: &App, work: &JobContext) -> Result<Pages> {
        let planned = (&self.resolved, cost, app.settings.tokens_total);
        run::compute(&self.question(), &Candidates::new(&self.texts), planned, app, work)
    }
}

/// The format of a ranking of texts in a dialect, and of its answer.
pub(crate) trait TextForm: Send {
    /// The position in the body of an error that the ranking reports at `pointer`.
    fn place(&self, pointer: Pointer) -> Pointer;

    /// Weighs a ranking whose answer has this format.
    fn cost(&self, ranking: &TextRanking<'_>, app: &App) -> Result<Cost>;

    fn write(
        &self,
        ranked: (&TextRanking<'_>, &Pages),
        app: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<()>;
}

/// A ranking of texts that was weighed.
pub(crate) struct PlannedTexts<'b, F> {
    ranking: TextRanking<'b>,
    form: F,
    cost: Cost,
}

impl<'b, F: TextForm> PlannedTexts<'b, F> {
    pub(crate) fn new(ranking: TextRanking<'b>, form: F, app: &App) -> Result<Self> {
        let cost = form.cost(&ranking, app);
        let cost = cost.map_err(|error| error.renamed(|pointer| form.place(pointer)))?;
        Ok(Self { ranking, form, cost })
    }
}

impl<F: TextForm> Planned for PlannedTexts<'_, F> {
    fn resolved(&self) -> &Resolved {
        &self.ranking.resolved
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
        let Self { ranking, form, cost } = *self;
        let answered = ranking.pages(&cost, app, job).and_then(|made| {
            form.write((&ranking, &made), app, job, answer)?;
            Ok(made.counts)
        });
        answered.map_err(|error| error.renamed(|pointer| form.place(pointer)))
    }
}
