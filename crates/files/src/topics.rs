//! Reads queries with their candidates, and judgements in NIST's format (qrels). The caller decides
//! how long a text may be.
//!
//! Without a header, a row of 4 columns is `qid`, `query`, `label`, `text`, and a row of 7 is
//! `qid`, `query`, `label`, `tweet_id`, `rank`, `ql_score`, `text`. A header may have any columns,
//! as long as `qid`, `query`, `label` and `text` are among them; `id` or `tweet_id` names the
//! document.

use std::collections::BTreeMap;

use crate::Result;
use crate::rows::{Accept, Rows, field, number, short};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topic {
    pub id: String,
    pub query: String,
    /// Document names of the candidates. trec_eval breaks ties by them: the larger string comes
    /// first.
    pub documents: Vec<String>,
    pub grades: Vec<u32>,
    pub texts: Vec<String>,
    pub columns: Vec<Vec<f64>>,
}

pub type Judgements = BTreeMap<String, BTreeMap<String, u32>>;

const QUESTIONS: [&str; 4] = ["qid", "query", "label", "text"];
const POSTS: [&str; 7] = ["qid", "query", "label", "tweet_id", "rank", "ql_score", "text"];

/// Reads the topics of a file in order, with the numbers of the columns `wanted`.
pub fn read(rows: &mut Rows, wanted: &[String], accept: Accept) -> Result<Vec<Topic>> {
    let first = rows.peek()?;
    let header = QUESTIONS.iter().all(|name| first.iter().any(|field| field == name));
    let names: Vec<String> = match first.len() {
        _ if header => first,
        4 => QUESTIONS.map(str::to_owned).to_vec(),
        7 => POSTS.map(str::to_owned).to_vec(),
        found => {
            return Err(rows.wrong(format!(
                "expected 4 columns ({}), 7 ({}), or a header that names the first four; found \
                 {found}",
                QUESTIONS.join(", "),
                POSTS.join(", ")
            )));
        }
    };
    if header {
        rows.next(|_| Ok(()))?;
    }
    let place = |name: &str| names.iter().position(|known| known == name);
    let [qid, query, label, body] = QUESTIONS.map(|name| place(name).unwrap_or(0));
    let document = place("id").or_else(|| place("tweet_id"));
    let mut columns = Vec::new();
    for name in wanted {
        let missing =
            || rows.wrong(format!("no column `{}`; there are {}", name, names.join(", ")));
        columns.push(place(name).ok_or_else(missing)?);
    }
    let mut topics: Vec<Topic> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut row = 0_usize;
    let mut take = |fields: &[&str]| {
        if fields.len() != names.len() {
            return Err(format!("expected {} columns, found {}", names.len(), fields.len()));
        }
        let (id, asked) = (field(fields, qid, "qid")?, field(fields, query, "query")?);
        let at = *known.entry(id.to_owned()).or_insert(topics.len());
        if at == topics.len() {
            let query = accept(asked, "the query")?.to_owned();
            let columns = vec![Vec::new(); columns.len()];
            topics.push(Topic { id: id.to_owned(), query, columns, ..Topic::default() });
        }
        let Some(topic) = topics.get_mut(at) else { return Ok(()) };
        if topic.query != asked {
            return Err(format!("query `{}` has two different texts", short(id)));
        }
        topic.grades.push(grade(field(fields, label, "label")?, "label")?);
        topic.texts.push(accept(field(fields, body, "text")?, "the text")?.to_owned());
        topic.documents.push(match document {
            Some(place) => field(fields, place, "id")?.to_owned(),
            // Falling names keep candidates with equal scores in the order of the file, as `/rank`
            // does.
            None => format!("{:012}", 999_999_999_999 - row.min(999_999_999_999)),
        });
        for ((numbers, &place), name) in topic.columns.iter_mut().zip(&columns).zip(wanted) {
            numbers.push(number(field(fields, place, name)?, name)?);
        }
        row += 1;
        Ok(())
    };
    while rows.next(&mut take)?.is_some() {}
    if topics.is_empty() {
        return Err(rows.wrong("the file holds no row"));
    }
    for topic in &topics {
        let mut documents: Vec<&String> = topic.documents.iter().collect();
        documents.sort_unstable();
        if let Some(twice) = documents.windows(2).find(|two| two[0] == two[1]) {
            let (id, twice) = (short(&topic.id), short(twice[0]));
            return Err(rows.wrong(format!("query `{id}` has the document `{twice}` twice")));
        }
    }
    Ok(topics)
}

/// Adds judgements in 3 columns (`qid`, `document`, `grade`) or in trec_eval's 4 (`qid`, `0`,
/// `document`, `grade`) to `judgements`.
pub fn add_judgements(rows: &mut Rows, judgements: &mut Judgements) -> Result<()> {
    let mut take = |fields: &[&str]| {
        let (qid, document, value) = match *fields {
            [qid, document, value] | [qid, _, document, value] => (qid, document, value),
            _ => {
                let expected = "expected 3 columns (qid, document, grade) or 4 (qid, 0, document, \
                                grade)";
                return Err(format!("{expected}, found {}", fields.len()));
            }
        };
        let value = grade(value, "grade")?;
        let grades = judgements.entry(qid.to_owned()).or_default();
        match grades.insert(document.to_owned(), value) {
            Some(before) if before != value => Err(format!(
                "`{}` has grade {before} and {value} for query `{}`",
                short(document),
                short(qid)
            )),
            _ => Ok(()),
        }
    };
    while rows.next(&mut take)?.is_some() {}
    Ok(())
}

/// Reads a grade. NIST marks spam by negative grades, which trec_eval treats as not relevant.
fn grade(field: &str, name: &str) -> Result<u32, String> {
    let wrong = || format!("{name}: expected a whole number, found `{}`", short(field));
    let value: i64 = field.trim().parse().map_err(|_| wrong())?;
    u32::try_from(value.max(0)).map_err(|_| wrong())
}
