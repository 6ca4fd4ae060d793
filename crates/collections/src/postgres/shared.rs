//! What the collections of a database share: connections, limits, memory and windows.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::postgres::pool::Pool;
use crate::windows::Windows;
use crate::{Budget, Limits};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) limits: Limits,
    pub(super) budget: Arc<Budget>,
    /// Windows that texts are matched against, by the collections' ids.
    pub(super) windows: Mutex<HashMap<i64, Arc<Windows>>>,
    /// Last known numbers of collections and items.
    pub(super) counted: Mutex<(usize, usize)>,
}

impl Shared {
    pub(super) fn windows(&self, id: i64) -> Arc<Windows> {
        let mut all = self.windows.lock();
        let fresh = || {
            let windows = Arc::<Windows>::default();
            self.budget.register(&windows);
            windows
        };
        Arc::clone(all.entry(id).or_insert_with(fresh))
    }
}
