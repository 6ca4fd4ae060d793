//! A network's score and query likelihood, added up: `ln p(relevant) + α · ln p(query | post)`.

use crate::methods::Compare;
use crate::methods::Loaded;
use crate::methods::Scorer;
use crate::methods::Scratch;
use crate::methods::ql::QueryLikelihood;
use crate::methods::ranker::Attention;
use crate::methods::ranker::network::Network;
use crate::methods::ranker::stored;
use crate::model::Model;
use crate::model::Phrase;

struct WithQl {
    network: Network,
    likelihood: QueryLikelihood,
    alpha: f64,
}

/// Needs a network and counts.
pub(super) fn load(model: &Model) -> Loaded {
    let found = stored(model)?;
    Ok(found.and_then(|(network, settings)| {
        let likelihood = QueryLikelihood::new(model)?;
        let alpha = settings.alpha;
        Ok(Scorer::Compare(Box::new(WithQl { network, likelihood, alpha })))
    }))
}

impl Compare for WithQl {
    fn compare(
        &self,
        one: &Phrase<'_>,
        many: &[Phrase<'_>],
        out: &mut [f32],
        scratch: &mut Scratch,
    ) {
        self.network.score(one, many, out, &mut scratch.ranker);
        for (score, post) in out.iter_mut().zip(many) {
            let likelihood = self.likelihood.score(one, post);
            *score = (f64::from(*score) + self.alpha * likelihood) as f32;
        }
    }

    fn attention(
        &self,
        one: &Phrase<'_>,
        other: &Phrase<'_>,
        scratch: &mut Scratch,
    ) -> Option<Vec<Attention>> {
        self.network.attention(one, other, &mut scratch.ranker)
    }
}
