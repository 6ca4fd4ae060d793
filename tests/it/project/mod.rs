//! The project itself: its documents, and the order of its imports.

mod documents;
mod layers;
