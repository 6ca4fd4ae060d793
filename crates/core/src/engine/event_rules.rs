//! The thresholds for following streams that were found for a model: section `events`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::methods::Fitted;
use crate::methods::sets::same_event;
use crate::model::{Model, ModelError, Phrase};

const SECTION: &str = "events";

/// For each kind of stream, by the method that scores: the least score at which a text joins an event.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EventRules {
    /// Of topics among noise.
    pub topics: BTreeMap<String, f64>,
    /// The rules for the preset `stories`, events of a few posts.
    pub stories: BTreeMap<String, f64>,
}

impl EventRules {
    /// Reads the section of a model file, if it has one. A malformed section is an error.
    pub fn read(model: &Model) -> Result<Self, ModelError> {
        let rules: Self = model.section_settings(SECTION)?;
        let mut all = rules.topics.iter().chain(&rules.stories);
        match all.find(|(_, threshold)| !threshold.is_finite()) {
            None => Ok(rules),
            Some((method, _)) => {
                let problem = format!("the threshold of {method} is not finite");
                Err(model.broken_section(SECTION, problem))
            }
        }
    }

    /// The thresholds as a model file stores them.
    pub fn fitted(&self) -> Fitted {
        let settings = serde_json::json!(self).to_string();
        Fitted { section: SECTION, settings, tensors: Vec::new(), bytes: Vec::new() }
    }
}

impl Engine {
    /// The words that two texts share, the rarest first.
    pub(crate) fn shared_words(&self, one: &str, other: &str) -> Vec<Box<str>> {
        let phrases = [one, other].map(|text| {
            let mut phrase = Phrase::new(&self.model);
            phrase.read(text);
            phrase
        });
        let shared = same_event::shared(&phrases[0], &phrases[1]);
        shared.into_iter().map(|(word, _)| word.into()).collect()
    }

    /// The thresholds of streams that were found for the model.
    pub fn event_rules(&self) -> &EventRules {
        &self.event_rules
    }
}
