//! Rankings made one: by an independent implementation, and by the laws that every fusion keeps.

mod golden;
mod laws;
