//! Turns an [`ItemSelector`] into a condition of SQL that admits the same items as its [`Filter`].

use std::fmt::Write;

use postgres::types::ToSql;
use serde_json::{Value, json};

use crate::filter::{Comparison, Condition, Side};
use crate::{Attribute, AttributeKind, Filter, ItemSelector};

pub(super) fn kind(kind: AttributeKind) -> &'static str {
    match kind {
        AttributeKind::Truth => "boolean",
        AttributeKind::Number => "number",
        AttributeKind::Text => "string",
    }
}

#[derive(Default)]
pub(super) struct Sql {
    pub(super) text: String,
    values: Vec<Box<dyn ToSql + Sync>>,
}

impl Sql {
    /// Returns the SQL condition that an item `i` is selected and not older than `oldest`.
    pub(super) fn new(which: &ItemSelector<'_>, oldest: Option<i64>) -> Self {
        let mut sql = Self::default();
        sql.text.push_str("TRUE");
        if let Some(oldest) = oldest {
            sql.text.push_str(" AND i.time >= ");
            sql.value(oldest);
        }
        // Neither an item nor an event has a name with the character U+0000.
        if let Some(event) = &which.event {
            match event.contains('\0') {
                true => sql.text.push_str(" AND FALSE"),
                false => {
                    sql.text.push_str(" AND i.event = ");
                    sql.value(event.to_string());
                }
            }
        }
        let without = which.without.iter().filter(|name| !name.contains('\0'));
        let without: Vec<String> = without.map(ToString::to_string).collect();
        if !without.is_empty() {
            sql.text.push_str(" AND i.id <> ALL (");
            sql.value(without);
            sql.text.push(')');
        }
        if !which.filter.is_empty() {
            sql.text.push_str(" AND ");
            sql.filter(&which.filter);
        }
        sql
    }

    /// Adds a parameter and its placeholder.
    pub(super) fn value(&mut self, value: impl ToSql + Sync + 'static) {
        self.values.push(Box::new(value));
        let _ = write!(self.text, "${}", self.values.len());
    }

    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value).collect()
    }

    fn filter(&mut self, filter: &Filter) {
        self.each("AND", "TRUE", filter.conditions(), Self::condition);
    }

    /// Conditions joined by a word; an empty list gives `empty`.
    fn each<T>(
        &mut self,
        joined: &str,
        none: &str,
        list: &[T],
        mut one: impl FnMut(&mut Self, &T),
    ) {
        if list.is_empty() {
            self.text.push_str(none);
            return;
        }
        for (place, condition) in list.iter().enumerate() {
            self.text.push_str(if place == 0 { "(" } else { " " });
            if place > 0 {
                self.text.push_str(joined);
                self.text.push(' ');
            }
            one(self, condition);
        }
        self.text.push(')');
    }

    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::Any(filters) => self.each("OR", "FALSE", filters, Self::filter),
            Condition::Time(test) => self.time(test),
            Condition::Not(filter) => {
                self.text.push_str("NOT ");
                self.filter(filter);
            }
            // No stored attribute has such a name.
            Condition::Of(name, test) if name.contains('\0') => {
                let holds = matches!(test, Comparison::NotIn(_) | Comparison::Exists(false));
                self.text.push_str(if holds { "TRUE" } else { "FALSE" });
            }
            Condition::Of(name, Comparison::In(list)) => self.is_one_of(name, list.list()),
            Condition::Of(name, Comparison::NotIn(list)) => {
                self.text.push_str("NOT ");
                self.is_one_of(name, list.list());
            }
            Condition::Of(name, Comparison::Exists(there)) => {
                self.text.push_str(if *there { "i.attributes ? " } else { "NOT i.attributes ? " });
                self.value(name.to_string());
            }
            Condition::Of(name, Comparison::Beside(side, other)) => self.beside(name, *side, other),
        }
    }

    fn time(&mut self, test: &Comparison) {
        let milliseconds = |value: &Attribute| match value {
            Attribute::Number(number) => number.as_i64(),
            Attribute::Text(_) | Attribute::Truth(_) => None,
        };
        let (sign, list) = match test {
            Comparison::In(list) => ("= ANY (", list.list()),
            Comparison::NotIn(list) => ("<> ALL (", list.list()),
            Comparison::Exists(there) => {
                return self.text.push_str(if *there { "TRUE" } else { "FALSE" });
            }
            Comparison::Beside(side, other) => (sign(*side), std::slice::from_ref(other)),
        };
        let times: Vec<i64> = list.iter().filter_map(milliseconds).collect();
        let _ = write!(self.text, "i.time {sign} ");
        match test {
            Comparison::Beside(..) => self.value(times.first().copied()),
            _ => {
                self.value(times);
                self.text.push(')');
            }
        }
    }

    /// The attribute equals one of these. The index supports containment of objects.
    fn is_one_of(&mut self, name: &str, list: &[Attribute]) {
        let can_be =
            |value: &&Attribute| !matches!(value, Attribute::Text(text) if text.contains('\0'));
        let list: Vec<&Attribute> = list.iter().filter(can_be).collect();
        self.each("OR", "FALSE", &list, |sql, value| {
            sql.text.push_str("i.attributes @> ");
            let value: Value = json!({ name: value });
            sql.value(value);
        });
    }

    /// The attribute is of the same kind, and on this side of another value.
    fn beside(&mut self, name: &str, side: Side, other: &Attribute) {
        let mut sign = sign(side);
        if matches!(other, Attribute::Truth(_)) {
            self.text.push_str("FALSE");
            return;
        }
        let kind = kind(other.kind());
        self.text.push_str("CASE WHEN jsonb_typeof(i.attributes -> ");
        self.value(name.to_owned());
        let _ = write!(self.text, ") = '{kind}' THEN (i.attributes ->> ");
        self.value(name.to_owned());
        match other {
            Attribute::Text(text) => {
                // No stored text has the character U+0000, so a longer text with the same beginning
                // before the first U+0000 is greater than the whole.
                let text = text.split_once('\0').map_or(&**text, |(before, _)| {
                    sign = if matches!(side, Side::Above | Side::NotBelow) { ">" } else { "<=" };
                    before
                });
                let _ = write!(self.text, ") COLLATE \"C\" {sign} ");
                self.value(text.to_owned());
            }
            Attribute::Number(_) | Attribute::Truth(_) => {
                let written = serde_json::to_string(other).unwrap_or_default();
                let _ = write!(self.text, ")::numeric {sign} (");
                self.value(written);
                self.text.push_str("::text)::numeric");
            }
        }
        self.text.push_str(" ELSE FALSE END");
    }
}

fn sign(side: Side) -> &'static str {
    match side {
        Side::Above => ">",
        Side::NotBelow => ">=",
        Side::Below => "<",
        Side::NotAbove => "<=",
    }
}
