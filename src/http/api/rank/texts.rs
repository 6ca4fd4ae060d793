//! Texts ranked for one text, as other dialects ask for it: all by the default of everything that is not said.

use cognate::engine::rank::{Pages, Question};
use cognate::engine::{Candidates, PageOptions};

use crate::http::api::cost::Cost;
use crate::http::api::rank::run;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::request::fields::Text;
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;

/// Bytes of a text in an answer beside itself: `,"text":""`.
pub(super) const TEXT_BYTES: usize = 10;

/// Texts that are ranked for one text.
pub(crate) struct TextRanking<'b> {
    pub(crate) query: Text<'b>,
    pub(crate) texts: Vec<Text<'b>>,
    pub(crate) resolved: Resolved,
    /// Most results wanted.
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

    pub(crate) fn cost(&self, app: &App) -> Result<Cost, ApiError> {
        self.resolved.model.engine.check(&self.resolved.query)?;
        let bytes_of =
            |text: &Text<'_>| if self.return_text { TEXT_BYTES + text.as_ref().len() } else { 0 };
        let candidates = Candidates::of(&self.texts);
        run::weigh(&self.question(), &candidates, &self.resolved, (bytes_of, false), app)
    }

    pub(crate) fn pages(
        &self,
        cost: &Cost,
        app: &App,
        work: &JobContext,
    ) -> Result<Pages, ApiError> {
        let planned = (&self.resolved, cost, app.settings.tokens_total);
        run::compute(&self.question(), &Candidates::of(&self.texts), planned, app, work)
    }
}
