//! Reranking: documents by their relevance to a query, as in the APIs of Cohere, Jina, Voyage,
//! Infinity, vLLM and many more; and of text-embeddings-inference, with `texts`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use cognate::engine::rank::Pages;
use cognate::engine::{Place, Probability};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::http::api::cost::Cost;
use crate::http::api::explain::explaining;
use crate::http::api::pipeline;
use crate::http::api::pipeline::Endpoint;
use crate::http::api::question::{AnyAsk, AnyPlanned, Ask, PlanContext};
use crate::http::api::rank::{PlannedTexts, TextForm, TextRanking};
use crate::http::app::App;
use crate::http::compatible::address::{Address, Target};
use crate::http::compatible::input::{Document, OnlyObject, Truncate, Whole, has_field};
use crate::http::compatible::openai::Usage;
use crate::http::compatible::spans::{RelevantSpans, Span};
use crate::http::compatible::with_names;
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Pointer, Result};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::request::fields::{List, ModelName, Text};
use crate::http::request::json::given;
use crate::http::request::query::{Resolved, Selection};
use crate::http::request::{body, fields, json};
use crate::http::routes::Routes;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

const MAX_EXPLAINED: usize = 100;
const MORE_BYTES: usize = 32;
/// Bytes of the spans of a document: those of a dozen.
const SPAN_BYTES: usize = 12 * 64;

pub(super) fn routes() -> Routes {
    let others = ["/v1/rerank", "/v1/reranking", "/reranking"];
    with_names(Routes::default(), routes!(rerank_v2), "/v2/rerank", &others)
}

/// The route that text-embeddings-inference has as well.
pub(super) fn shared() -> Routes {
    with_names(Routes::default(), routes!(rerank), "/rerank", &[])
}

/// The body of `POST /rerank`: `documents`, or `texts` in the words of text-embeddings-inference. Other
/// fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'b"))]
pub(super) struct RerankRequest<'b> {
    /// What the documents are compared with.
    #[schema(value_type = fields::CutText)]
    query: Document<'b>,
    /// Texts, or objects with `text`.
    #[schema(value_type = Option<Vec<Text<'b>>>, min_items = 1, max_items = 10000)]
    documents: Option<List<Document<'b>>>,
    /// The documents of text-embeddings-inference.
    #[schema(value_type = Option<Vec<Text<'b>>>, min_items = 1, max_items = 10000)]
    texts: Option<List<Document<'b>>>,
    /// A model of this server, as `NAME` or `NAME:METHOD`; default: the first model.
    #[schema(value_type = Option<String>)]
    model: Option<ModelName<'b>>,
    /// Most results wanted; 0 or nothing for all.
    top_n: Option<Whole>,
    /// The same, as Voyage calls it; the results are then under `data`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Whole>)]
    top_k: Option<Option<Whole>>,
    /// Voyage's name of `truncate`.
    truncation: Option<Truncate>,
    /// Whether to cut a text that is too long; default: `true`.
    truncate: Option<Truncate>,
    /// Repeat each result's text.
    return_documents: Option<bool>,
    /// The same, as text-embeddings-inference calls it.
    return_text: Option<bool>,
    /// Give the method's scores instead of relevances, for `texts`; clients of Infinity send it with
    /// `documents`, too.
    raw_scores: Option<bool>,
    /// How a relevance is computed: the probability that the model's calibration gives, where it has
    /// one for the method, else the score.
    relevance: Option<Relevance>,
    #[schema(value_type = Option<RelevantSpans>)]
    relevant_spans: Option<OnlyObject<RelevantSpans>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `results`, as in Cohere's API.
    Results,
    /// Infinity's form: the same fields, with documents as bare strings.
    Infinity,
    /// A list under `data`, as in Voyage's API.
    Data,
    /// A bare list, as in text-embeddings-inference's API.
    Bare,
}

pub(super) struct RerankQuestion<'b> {
    query: Text<'b>,
    documents: Vec<Text<'b>>,
    target: Target<'b>,
    top_k: Option<usize>,
    truncate: bool,
    return_text: bool,
    /// Number of documents; those beyond the limit are not stored.
    length: usize,
    wording: Wording,
}

/// The fields of the documents, and the form of their answer.
#[derive(Clone, Copy)]
struct Wording {
    form: Form,
    raw_scores: bool,
    relevance: Option<Relevance>,
    spans: Option<RelevantSpans>,
}

impl<'b> RerankRequest<'b> {
    fn ask(self, address: &Address) -> Result<RerankQuestion<'b>> {
        let of_voyage = self.top_k.is_some() || self.truncation.is_some();
        let documents = self.documents.filter(|_| address.rerank);
        let texts = self.texts.filter(|_| address.tei);
        let (form, documents) = match (documents, texts) {
            (Some(documents), None) if of_voyage => (Form::Data, documents),
            (Some(documents), None) if self.raw_scores.is_some() => (Form::Infinity, documents),
            (Some(documents), None) => (Form::Results, documents),
            (None, Some(texts)) => (Form::Bare, texts),
            (None, None) => {
                let missing = if address.rerank { "documents" } else { "texts" };
                let detail = format!("the field `{missing}` is missing");
                let pointer = Pointer::default().field(missing);
                return Err(ApiError::at(Code::InvalidField, pointer, detail));
            }
            (Some(_), Some(_)) => {
                let detail = "give either `documents` or `texts`";
                return Err(ApiError::at(Code::InvalidField, "/texts", detail));
            }
        };
        let List { items, length } = documents;
        let Document(query) = self.query;
        let target = address.target(self.model.map(|ModelName(name)| name));
        let most = self.top_k.flatten().or(self.top_n).map(|Whole(most)| most);
        let most = most.filter(|&most| most > 0);
        let truncate = self.truncate.or(self.truncation);
        Ok(RerankQuestion {
            query,
            documents: items.into_iter().map(|Document(text)| text).collect(),
            target,
            // Clients of text-embeddings-inference expect all results.
            top_k: most.filter(|_| form != Form::Bare).map(|most| most.min(length.max(1))),
            truncate: truncate.is_none_or(|Truncate(truncate)| truncate),
            return_text: self.return_documents.or(self.return_text).unwrap_or(false),
            length,
            wording: Wording {
                form,
                raw_scores: self.raw_scores.unwrap_or(false),
                relevance: self.relevance,
                spans: self
                    .relevant_spans
                    .map(|OnlyObject(spans)| spans)
                    .filter(|spans| spans.enabled() && form != Form::Bare),
            },
        })
    }
}

impl Wording {
    fn dialect(&self) -> Dialect {
        if self.form == Form::Bare { Dialect::Tei } else { Dialect::Rerank }
    }

    fn field(&self) -> &'static str {
        if self.form == Form::Bare { "/texts" } else { "/documents" }
    }

    fn spans(&self, ranking: &TextRanking<'_>, index: usize) -> Result<Option<Vec<Span>>> {
        let Some(spans) = &self.spans else { return Ok(None) };
        let (query, document) = (ranking.query.as_ref(), text(ranking, index));
        let (engine, asked) = (&ranking.resolved.model.engine, &ranking.resolved.query);
        // A text that cannot be scored has no relevant span.
        if engine.check_text(document, asked, Place::Candidate(index)).is_err() {
            return Ok(Some(Vec::new()));
        }
        let explained = engine.explain(query, document, asked)?;
        if explained.shares.is_none() && !explained.unscored {
            let method = asked.method.name();
            let detail =
                format!("what {method} scores does not divide into words, so it has no spans");
            return Err(ApiError::at(Code::MethodUnavailable, "/relevant_spans", detail));
        }
        Ok(Some(spans.of(&explained, document)))
    }
}

impl TextForm for Wording {
    fn place(&self, pointer: Pointer) -> Pointer {
        pointer.renamed("candidates", self.field()).renamed("method", "/model")
    }

    fn cost(&self, ranking: &TextRanking<'_>, app: &App) -> Result<Cost> {
        let (resolved, field) = (&ranking.resolved, self.field());
        Scale::new(resolved, self.relevance)?;
        let cost = ranking.cost(app)?;
        let wanted = ranking.top_k.unwrap_or(usize::MAX).min(ranking.texts.len());
        if self.spans.is_none() {
            return cost.longer(wanted * MORE_BYTES, field, app);
        }
        if wanted > MAX_EXPLAINED {
            let what = "documents with spans (`top_n` asks for fewer)";
            let code = Code::TooManyItems;
            return Err(ApiError::beyond(code, "/relevant_spans", what, MAX_EXPLAINED, wanted));
        }
        resolved.check_explains()?;
        // The best documents are not known yet, so the one with the most words is assumed. The
        // query is weighed with that one alone: reading a long query for each document could take
        // minutes.
        let documents = ranking.texts.iter().map(AsRef::<str>::as_ref);
        let longest = documents.max_by_key(|document| resolved.words(document));
        let query = ranking.query.as_ref();
        let most = longest.map_or(0, |longest| explaining(query, longest, resolved));
        let cost = cost.heavier((wanted as u64).saturating_mul(most), app)?;
        cost.longer(wanted * (MORE_BYTES + SPAN_BYTES), field, app)
    }

    fn write(
        &self,
        (ranking, made): (&TextRanking<'_>, &Pages),
        app: &App,
        job: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let results = made.pages.iter().flat_map(|page| page.results());
        let ranked = results.map(|result| (result.index, result.score));
        let with_text = ranking.return_text;
        let scale = Scale::new(&ranking.resolved, self.relevance)?;
        if self.form == Form::Bare {
            let rank = |(index, score): (usize, Option<f32>)| TeiRank {
                index,
                score: match self.raw_scores {
                    true => TeiScore::Raw(score.unwrap_or(0.0)),
                    false => TeiScore::Relevance(scale.relevance(score)),
                },
                text: with_text.then(|| text(ranking, index)),
            };
            return answer.write_json(&ranked.map(rank).collect::<Vec<_>>());
        }
        let mut results = Vec::new();
        for (index, score) in ranked {
            let text = || text(ranking, index);
            let document = with_text.then(|| match self.form {
                Form::Data | Form::Infinity | Form::Bare => RerankDocument::Bare(text()),
                Form::Results => RerankDocument::Object { text: text() },
            });
            let relevant_spans = self.spans(ranking, index)?;
            if relevant_spans.is_some() {
                job.check()?;
            }
            let relevance_score = scale.relevance(score);
            results.push(RerankResult { index, relevance_score, document, relevant_spans });
        }
        let (results, data) = match self.form {
            Form::Data => (None, Some(results)),
            Form::Results | Form::Infinity | Form::Bare => (Some(results), None),
        };
        answer.write_json(&RerankResponse {
            id: format!("rerank-{}", app.ids.next().to_str().unwrap_or_default()),
            object: "rerank",
            model: &ranking.resolved.model.name,
            results,
            data,
            usage: Usage::new(made.counts.tokens as usize),
        })
    }
}

fn text<'r>(ranking: &'r TextRanking<'_>, index: usize) -> &'r str {
    ranking.texts.get(index).map_or("", AsRef::as_ref)
}

impl Endpoint for RerankQuestion<'_> {
    type Address = Address;

    fn check_head(request: &Request) -> Result<()> {
        body::check_encoding(request.headers())
    }

    fn read<'b>(body: &'b [u8], address: &Address) -> Result<AnyAsk<'b>> {
        let asked = json::read_object::<RerankRequest<'_>>(body).and_then(|body| body.ask(address));
        match asked {
            Ok(question) => Ok(Box::new(question)),
            Err(error) => {
                let of_tei = address.tei && (!address.rerank || has_field(body, "texts"));
                Err(error.in_dialect(if of_tei { Dialect::Tei } else { Dialect::Rerank }))
            }
        }
    }
}

impl Ask for RerankQuestion<'_> {
    fn dialect(&self) -> Dialect {
        self.wording.dialect()
    }

    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>>
    where
        Self: 'q,
    {
        let Self { query, documents, target, top_k, truncate, return_text, length, wording } =
            *self;
        let (app, field) = (context.app, wording.field());
        let most = ("max_candidates", app.settings.max_candidates);
        pipeline::check_length(field, field.trim_start_matches('/'), length, most)?;
        let selection = Selection {
            truncate: Some(truncate),
            ..Selection::named(target.model.as_ref(), target.method.as_ref())
        };
        let resolved = selection.resolve_ranking(context.models);
        let resolved = resolved.map_err(|error| error.renamed(|pointer| wording.place(pointer)))?;
        let ranking = TextRanking { query, texts: documents, resolved, top_k, return_text };
        Ok(Box::new(PlannedTexts::new(ranking, wording, app)?))
    }
}

/// Error codes of reranking, besides the common ones.
const RERANK: &[Code] = &[Code::MethodOnlyRanks, Code::MeasureNotSupported, Code::NotCalibrated];

refusals!(RerankRefusals in Dialect::Rerank; QUESTION, LIST, RERANK);
refusals!(EitherRefusals in Dialect::Rerank, Dialect::Tei; QUESTION, LIST, RERANK);

/// Ranks documents for a query in the format of Cohere, Jina and Voyage.
///
/// Also under `/v1/rerank`, `/v1/reranking` and `/reranking`.
#[utoipa::path(
    post,
    path = "/v2/rerank",
    tag = "rerank",
    request_body(content = RerankRequest<'_>, content_type = "application/json"),
    responses(
        (status = 200, description = "Documents, most relevant first", body = RerankResponse<'_>),
        RerankRefusals,
    ),
)]
async fn rerank_v2(app: State<Arc<App>>, address: Address, request: Request) -> Result<Response> {
    rerank(app, address.without_tei(), request).await
}

question! {
    /// Ranks documents by relevance to a query.
    ///
    /// `documents` are answered as by `/v2/rerank`, `texts` as by text-embeddings-inference.
    rerank: "rerank" "/rerank" asks RerankQuestion<'_>;
    RerankRequest<'_> => EitherRerank<'_>: "Documents, most relevant first", EitherRefusals
}

/// Documents, most relevant first.
#[derive(Serialize, ToSchema)]
pub(super) struct RerankResponse<'r> {
    /// The answer's id.
    pub(super) id: String,
    /// `rerank`.
    pub(super) object: &'static str,
    /// The model's name.
    pub(super) model: &'r str,
    /// The documents, most relevant first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) results: Option<Vec<RerankResult<'r>>>,
    /// The same, for bodies with Voyage's fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Vec<RerankResult<'r>>>,
    pub(super) usage: Usage,
}

/// A document and its relevance.
#[derive(Serialize, ToSchema)]
pub(super) struct RerankResult<'r> {
    /// The index among the documents.
    pub(super) index: usize,
    /// The relevance, between 0 and 1 where the method's scores have bounds.
    pub(super) relevance_score: f64,
    /// The text, with `return_documents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) document: Option<RerankDocument<'r>>,
    /// The stretches that speak for it, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) relevant_spans: Option<Vec<Span>>,
}

/// A document's text.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum RerankDocument<'r> {
    /// As Voyage has it.
    Bare(&'r str),
    /// As the others have it.
    Object {
        /// The text.
        text: &'r str,
    },
}

/// A raw score, or a relevance.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum TeiScore {
    /// A score, as in `/rank`.
    Raw(f32),
    Relevance(f64),
}

/// A text and its score, as text-embeddings-inference writes it.
#[derive(Serialize, ToSchema)]
pub(super) struct TeiRank<'r> {
    /// The index in `texts`, from 0.
    pub(super) index: usize,
    /// How relevant the text is.
    #[schema(value_type = f64)]
    pub(super) score: TeiScore,
    /// The text, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'r str>,
}

/// What is answered: an object for `documents`, a bare list for `texts`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub(super) enum EitherRerank<'r> {
    /// For `documents`.
    Results(RerankResponse<'r>),
    /// For `texts`.
    Ranks(Vec<TeiRank<'r>>),
}

/// How a relevance is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Relevance {
    /// The method's score, moved from its range to 0…1; as it is where the range has no upper end.
    Score,
    /// The share of pairs with such a score that were related, among those that the model was
    /// calibrated on.
    Probability,
}

/// The conversion of scores to relevances, which keeps the order of candidates.
pub(super) enum Scale {
    /// By the range of the method's scores.
    Range(f32, f32),
    /// A probability by the model's calibration, shifted a little by the score's place in the range.
    Probability(Probability, [f32; 2]),
}

/// The weight in a relevance of the score's position in the method's range, besides the
/// probability. Where the calibration saw no difference between scores, clients that sort by the
/// relevance still find their order.
const OF_RANGE: f64 = 1e-3;

impl Scale {
    /// The scale: the requested one, else the calibration's if the model has one for the method.
    pub(super) fn new(resolved: &Resolved, wish: Option<Relevance>) -> Result<Self> {
        let engine = &resolved.model.engine;
        if let Some(fused) = &resolved.fused {
            let (low, high) = fused.fusion.by().range();
            return match wish {
                None | Some(Relevance::Score) => Ok(Self::Range(low, high)),
                Some(Relevance::Probability) => Err(not_calibrated()),
            };
        }
        let (method, measure) = (resolved.query.method, resolved.measure());
        let (low, high) = method.info().range;
        let known = engine.calibration(method, measure).and_then(Probability::from_calibration);
        match (wish, known) {
            (None | Some(Relevance::Probability), Some(known)) => {
                Ok(Self::Probability(known, [low, high]))
            }
            (None | Some(Relevance::Score), _) => Ok(Self::Range(low, high)),
            (Some(Relevance::Probability), None) => Err(not_calibrated()),
        }
    }

    /// The relevance of a candidate with this score, or without one.
    pub(super) fn relevance(&self, score: Option<f32>) -> f64 {
        let Some(score) = score else { return 0.0 };
        match self {
            Self::Probability(known, [low, high]) => {
                let of_range = place(score, *low, *high).unwrap_or(0.0);
                (1.0 - OF_RANGE) * known.at(score) + OF_RANGE * of_range
            }
            Self::Range(low, high) => place(score, *low, *high).unwrap_or(f64::from(score)),
        }
    }
}

fn not_calibrated() -> ApiError {
    let detail = "the model has no calibration for this method and measure; \
                  `cognate eval calibrate` makes one";
    ApiError::at(Code::NotCalibrated, "/relevance", detail)
}

/// The position of a score between the ends of its range, if it has an upper one. Scores without a
/// lower end are logarithms of probabilities, as of `ql`.
fn place(score: f32, low: f32, high: f32) -> Option<f64> {
    let [score, low, high] = [score, low, high].map(f64::from);
    let place = if low.is_finite() { (score - low) / (high - low) } else { (score - high).exp() };
    high.is_finite().then(|| place.clamp(0.0, 1.0))
}
