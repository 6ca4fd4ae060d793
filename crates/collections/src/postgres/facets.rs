//! How many items of a table have each value of an attribute.

use postgres::types::Json;

use crate::postgres::condition::Sql;
use crate::postgres::rows::{signed, unsigned};
use crate::postgres::session::Session;
use crate::{Attribute, CollectionError, Facet, Result};

/// Counts of an attribute's values among the items that a condition admits. JSON values are equal
/// where those of filters are.
pub(super) fn facet(
    session: &mut Session<'_>,
    table: &str,
    mut sql: Sql,
    (name, most): (&str, usize),
) -> Result<Facet> {
    if name.contains('\0') {
        return Ok(Facet::default());
    }
    sql.text.push_str(" AND i.attributes ? ");
    sql.value(name.to_owned());
    let own = sql.values().len();
    sql.text = format!(
        "SELECT v, n, count(*) OVER (), (sum(n) OVER ())::bigint FROM (\
         SELECT i.attributes -> ${own} AS v, count(*) AS n FROM {table} i WHERE {} GROUP BY 1) f \
         ORDER BY n DESC, jsonb_typeof(v), \
         CASE WHEN jsonb_typeof(v) = 'number' THEN (v #>> '{{}}')::numeric END, \
         (v #>> '{{}}') COLLATE \"C\" LIMIT ",
        sql.text
    );
    // Without a row the totals of all values would be missing.
    sql.value(signed(most.max(1) as u64));
    let mut facet = Facet::default();
    for row in session.query(&sql.text, &sql.values())? {
        let Json(value): Json<Attribute> = row.try_get(0)?;
        let count = |index| Ok::<_, CollectionError>(unsigned(row.try_get(index)?) as usize);
        facet.values.push((value.as_told(), count(1)?));
        (facet.distinct, facet.items) = (count(2)?, count(3)?);
    }
    facet.values.truncate(most);
    Ok(facet)
}
