//! Placeholder.
/// Who is at the other end.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub std::net::SocketAddr);
