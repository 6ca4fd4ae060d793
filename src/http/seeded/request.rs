//! A request by its waits alone, without a handler: for units, its body, its turn and memory for its answer.
//! It may turn out to be larger than it was admitted for.

use std::rc::Rc;
use std::time::Duration;

use cognate_testing::Chance;

use crate::http::error::Code;
use crate::http::seeded::{ANSWERS, Count, NAMES, Run};

/// What one request asks for.
pub(super) struct Request {
    client: usize,
    items: usize,
    body: Duration,
    /// The collection that is written to.
    writes: Option<usize>,
    /// Items that turn out only while it is computed.
    more: usize,
    computes: Duration,
    answer: usize,
    reads: Duration,
}

impl Request {
    pub fn of(chance: &mut Chance) -> Self {
        let mut span = |most| Duration::from_millis(chance.below(most) as u64);
        let (body, computes, reads) = (span(40), span(120), span(60));
        let items = 1 << (5 + chance.below(6));
        Self {
            client: chance.below(3),
            items: 1 + chance.below(items),
            body,
            writes: chance.below(4).checked_sub(2),
            more: if chance.below(4) == 0 { chance.below(300) } else { 0 },
            computes,
            answer: chance.below(ANSWERS / 4),
            reads,
        }
    }

    pub async fn run(self, run: Rc<Run>) {
        match self.answer(&run).await {
            Ok(()) => run.answered.set(run.answered.get() + 1),
            Err(Code::Overloaded) => run.refused.set(run.refused.get() + 1),
            Err(code) => panic!("refused by {code:?}"),
        }
    }

    async fn answer(&self, run: &Run) -> Result<(), Code> {
        let app = &run.service.app;
        let client = &run.service.clients[self.client];
        let unsent = app.unsent.of(client);
        let mut permit = app.admission.admit_soon(client).await.map_err(|refusal| refusal.code)?;
        tokio::time::sleep(self.body).await;
        let more = app.admission.top_up_soon(&mut permit, self.items).await;
        more.map_err(|refusal| refusal.code)?;
        let turn = match self.writes {
            Some(collection) => {
                let turn = app.turns.wait(NAMES[collection], None).await;
                assert_eq!(run.writes[collection].get(), 0, "two have the turn of a collection");
                Some((turn, Count::of(&run.writes[collection])))
            }
            None => None,
        };
        let beyond = (self.more > 0).then(|| {
            app.admission.charge_running(&mut permit, self.items + self.more);
            Count::of(&run.beyond)
        });
        let answer = unsent.answer(self.answer).map_err(|refusal| refusal.code)?;
        tokio::time::sleep(self.computes).await;
        drop((turn, permit, beyond));
        let answer = answer.into_bytes();
        tokio::time::sleep(self.reads).await;
        drop(answer);
        Ok(())
    }
}
