//! Exact optimal transport between two small weighted bags.
