//! Rankings made one: by an independent implementation, by the laws that every fusion keeps, and as
//! the model file holds them.

mod golden;
mod laws;
mod stored;
