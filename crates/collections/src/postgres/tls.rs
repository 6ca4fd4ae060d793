//! Encrypted connections to a database, whose certificate is checked by what this machine trusts.

use std::sync::OnceLock;

use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What makes connections encrypted where the server offers it and the URL's `sslmode` is not `disable`.
pub(super) fn connector() -> MakeRustlsConnect {
    static CONFIG: OnceLock<ClientConfig> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        // Without certificates of this machine no server is trusted, and the connection says so.
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
    });
    MakeRustlsConnect::new(config.clone())
}
