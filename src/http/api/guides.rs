//! The guides and the errors as pages: the repository's documents, rendered on request, guides
//! once. Links between them lead to each other; other links lead to the repository. A script adds
//! search and copy buttons; without it the text is complete.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use crate::http::api::pages;
use crate::http::error::{Code, Result};

const API: &str = include_str!("../../../docs/API.md");

macro_rules! guides {
    ($($name:literal)*) => {
        &[$(Guide { name: $name, markdown: include_str!(concat!("../../../docs/", $name, ".md")) }),*]
    };
}

/// Documents for users and operators, in the order in which they are listed.
const GUIDES: &[Guide] = guides![
    "API" "clients" "library" "METHODS" "recommend" "collections" "rank-collection" "match" "alerts" "data-folder"
    "events" "own-stream" "event-engines" "semantic-cache" "COMPATIBLE" "python" "files" "several-languages" "FAQ"
    "start-operators" "OPERATIONS" "night" "night-writes" "night-collections" "scaling" "postgres" "PROMISES"
];

static DRAWN: LazyLock<Vec<String>> = LazyLock::new(|| {
    GUIDES.iter().map(|guide| page(guide.title(), &drawn(guide.markdown))).collect()
});

struct Guide {
    /// The document's file name, without its extension.
    name: &'static str,
    markdown: &'static str,
}

impl Guide {
    fn title(&self) -> &'static str {
        self.markdown.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(self.name)
    }

    /// The first sentence.
    fn line(&self) -> String {
        let mut line = String::new();
        for event in Parser::new(self.markdown).skip_while(|event| *event != START_OF_TEXT) {
            match event {
                Event::Text(text) | Event::Code(text) => line.push_str(&text),
                Event::SoftBreak => line.push(' '),
                Event::End(TagEnd::Paragraph) => break,
                _ => {}
            }
        }
        let end = line.find(". ").map_or(line.len(), |at| at + 1);
        line.truncate(end);
        line
    }
}

const START_OF_TEXT: Event<'static> = Event::Start(Tag::Paragraph);

pub(crate) async fn list() -> Response {
    let one =
        |guide: &Guide| format!("- [{}]({}.md) {}\n", guide.title(), guide.name, guide.line());
    let list: String = GUIDES.iter().map(one).collect();
    pages::html(page("Guides", &drawn(&format!("# Guides\n\n{list}"))))
}

pub(crate) async fn guide(name: Result<Path<String>, PathRejection>) -> Result<Response> {
    let Path(name) = name.map_err(|_| pages::missing())?;
    let at = GUIDES.iter().position(|guide| guide.name == name);
    let page = at.and_then(|at| DRAWN.get(at)).ok_or_else(pages::missing)?;
    Ok(pages::html(page.clone()))
}

pub(crate) async fn problem(name: Result<Path<String>, PathRejection>) -> Result<Response> {
    let Path(name) = name.map_err(|_| pages::missing())?;
    let is_named = |code: &Code| code.uri().strip_prefix("/problems/") == Some(name.as_str());
    let code = Code::ALL.iter().copied().find(is_named);
    let code = code.ok_or_else(pages::missing)?;
    let (title, status) = (code.title(), code.status());
    let told = format!(
        "# {title}\n\nStatus {}, code `{}`. {}\n\n## What to do\n\n{}\n\n`detail` of the answer says what was wrong \
         with this request, and `errors` where; the [API by example](API.md#errors) tells of the form of errors.\n",
        status.as_u16(),
        code.name(),
        code.meaning().trim(),
        advice(status.as_u16()),
    );
    Ok(pages::html(page(title, &drawn(&told))))
}

/// The API document's advice for this status.
fn advice(status: u16) -> String {
    let errors = API.split("\n## Errors\n").nth(1).unwrap_or_default();
    let rows = errors.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let mut cells = rows.filter_map(|row| row.split_once('|'));
    let of_status = cells.find(|(of, _)| of.split(',').any(|of| of.trim() == status.to_string()));
    let mut advice = of_status.map_or("", |(_, advice)| advice.trim()).to_owned();
    if let Some(first) = advice.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    if !advice.ends_with('.') {
        advice.push('.');
    }
    advice
}

/// A page with a list of its sections beside the text.
fn page(title: &str, body: &str) -> String {
    let headings = body.split("<h2 id=\"").skip(1).filter_map(|rest| rest.split_once("</h2>"));
    let links = headings.filter_map(|(heading, _)| heading.split_once("\">"));
    let parts: String =
        links.map(|(id, text)| format!("<li><a href=\"#{id}\">{text}</a></li>\n")).collect();
    let page = include_str!("pages/guide.html");
    page.replace("{title}", title).replace("{parts}", &parts).replace("{body}", body)
}

fn drawn(markdown: &str) -> String {
    let (mut events, mut heading) = (Vec::new(), None::<(usize, String)>);
    // For each open link, whether it leads anywhere.
    let mut leads = Vec::new();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                heading = Some((events.len(), String::new()));
                events.push(headed(level, ""));
                continue;
            }
            Event::End(TagEnd::Heading(level)) => {
                if let Some((at, text)) = heading.take() {
                    events[at] = headed(level, &text);
                }
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let to = target(&dest_url);
                leads.push(to.is_some());
                let link = |to: String| {
                    let dest_url = to.into();
                    Event::Start(Tag::Link { link_type, dest_url, title, id })
                };
                events.extend(to.map(link));
                continue;
            }
            Event::End(TagEnd::Link) if leads.pop() != Some(true) => continue,
            // A table that is wider than the page scrolls in its own box.
            Event::Start(Tag::Table(_)) => events.push(Event::Html("<div class=\"box\">".into())),
            Event::End(TagEnd::Table) => {
                events.extend([event, Event::Html("</div>\n".into())]);
                continue;
            }
            // Pictures are only in the repository; their text replaces them.
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => continue,
            Event::Text(ref text) | Event::Code(ref text) => {
                if let Some((_, heading)) = &mut heading {
                    heading.push_str(text);
                }
            }
            _ => {}
        }
        events.push(event);
    }
    let mut html = String::new();
    html::push_html(&mut html, events.into_iter());
    html
}

fn headed(level: HeadingLevel, text: &str) -> Event<'static> {
    let id = (!text.is_empty()).then(|| CowStr::from(anchor(text)));
    Event::Start(Tag::Heading { level, id, classes: Vec::new(), attrs: Vec::new() })
}

/// The name by which documents link to a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|one| one.is_alphanumeric() || " -_".contains(*one));
    kept.flat_map(char::to_lowercase).map(|one| if one == ' ' { '-' } else { one }).collect()
}

/// The target of a link of a document, on this server or elsewhere; `None` for a file of the
/// repository.
fn target(link: &str) -> Option<String> {
    if link.starts_with('#') || link.starts_with("https://") {
        return Some(link.to_owned());
    }
    if link == "../openapi/cognate.json" {
        return Some("/openapi.json".to_owned());
    }
    let (path, place) = link.split_once('#').map_or((link, None), |(path, at)| (path, Some(at)));
    let name =
        path.strip_suffix(".md").filter(|name| GUIDES.iter().any(|one| one.name == *name))?;
    Some(place.map_or_else(|| format!("/guides/{name}"), |place| format!("/guides/{name}#{place}")))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_link_of_a_guide_leads_to_something() {
        let mut places = BTreeSet::new();
        for (guide, page) in GUIDES.iter().zip(&*DRAWN) {
            // It is inserted into the page without escaping.
            assert!(!guide.title().contains(['<', '&', '`']), "{}", guide.title());
            let ids = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next());
            places.extend(ids.map(|id| format!("/guides/{}#{id}", guide.name)));
            places.insert(format!("/guides/{}", guide.name));
        }
        let mut found = 0;
        for (guide, page) in GUIDES.iter().zip(&*DRAWN) {
            for link in page.split(" href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let of_own = link.starts_with('#').then(|| format!("/guides/{}{link}", guide.name));
                let link = of_own.unwrap_or_else(|| link.to_owned());
                if link.starts_with("/guides/") {
                    assert!(places.contains(&link), "{}: {link}", guide.name);
                    found += 1;
                }
            }
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn links_into_the_repository_are_text() {
        let html =
            drawn("## A `b` C\n\n[here](events.md#how-fast) [there](../src/main.rs) ![x](y.png)\n");
        assert_eq!(
            html,
            "<h2 id=\"a-b-c\">A <code>b</code> C</h2>\n\
             <p><a href=\"/guides/events#how-fast\">here</a> there x</p>\n"
        );
    }

    #[test]
    fn every_code_has_advice() {
        for code in Code::ALL {
            assert!(code.meaning().len() > 10, "{}", code.name());
            assert!(advice(code.status().as_u16()).len() > 20, "{}", code.name());
        }
    }
}
