//! What a home does while texts are matched against one of its collections: it tells what is there, and
//! writes what was decided, in a turn that nobody else writes in.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cognate::engine::Engine;
use cognate::window::stream;

use crate::held_window::HeldWindow;
use crate::{Budget, CollectionError, Item, Settings};

/// Most windows that are kept of a collection.
const MOST_WINDOWS: usize = 4;

/// A turn to match texts against a collection.
pub(super) trait Following {
    /// What the collection keeps.
    fn settings(&self) -> Settings;

    /// Counts changes in any other way than by items that were added or became too old or too many.
    fn revision(&self) -> u64;

    /// The number that the next item will have.
    fn next_number(&self) -> u64;

    /// Which of these names items have, those included that are too old.
    fn known(&mut self, names: HashSet<Box<str>>) -> Result<HashSet<Box<str>>, CollectionError>;

    /// At most so many of the last items in order, except those of some names.
    fn last(
        &mut self,
        most: usize,
        except: &HashSet<Box<str>>,
        now: i64,
    ) -> Result<Vec<Arc<Item>>, CollectionError>;

    /// At most so many of the last items in order, none before this number.
    fn since(&mut self, number: u64, most: usize) -> Result<Vec<Arc<Item>>, CollectionError>;

    /// The windows that are kept of the collection.
    fn windows(&self) -> &Windows;

    /// The memory that they share.
    fn budget(&self) -> &Arc<Budget>;

    /// Takes memory, for which what can be made again gives way: windows, where nothing else is kept.
    fn take_memory(&self, bytes: usize) -> Result<(), CollectionError> {
        if self.budget().take(bytes).is_ok() {
            return Ok(());
        }
        self.windows().clear();
        self.budget().take(bytes)
    }
}

/// What texts were matched against, kept for the next request.
#[derive(Debug, Default)]
pub(super) struct Windows(Mutex<Vec<HeldWindow>>);

impl Windows {
    /// Takes out the window of these settings, if there is one that can go on. Others that cannot are
    /// dropped.
    pub(super) fn take(
        &self,
        settings: &stream::Settings,
        engine: &Engine,
        revision: u64,
    ) -> Option<HeldWindow> {
        let mut windows = self.all();
        windows.retain(|window| window.can_go_on(engine, revision));
        let place = windows.iter().position(|window| window.settings() == settings)?;
        Some(windows.remove(place))
    }

    /// Keeps a window, in the place of the one that was not asked for longest.
    pub(super) fn keep(&self, window: HeldWindow) {
        let mut windows = self.all();
        windows.push(window);
        let many = windows.len().saturating_sub(MOST_WINDOWS);
        windows.drain(..many);
    }

    /// Drops all of them.
    pub(super) fn clear(&self) {
        self.all().clear();
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, Vec<HeldWindow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
