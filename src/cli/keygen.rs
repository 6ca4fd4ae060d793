//! `cognate keygen`: draws an API key and prints it with its line for the key file.

use std::io;
use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;

use crate::cli::{Failure, print, usage};
use crate::http::auth::keys;
use crate::http::auth::keys::{CollectionNames, Scope};

const PREFIX: &str = "cog_";

#[derive(Debug, Args)]
pub(super) struct KeygenArgs {
    /// Name of the key's owner: at most 64 of A-Z, a-z, 0-9, `.`, `_` and `-`
    id: String,
    /// Scope: query; collection, which also allows writing to collections; or admin, which allows that
    /// and reload
    #[arg(long, default_value = "query")]
    scope: Scope,
    /// The only collections that the key reaches: names, and beginnings of names with `*`, as in
    /// `news,shop-*`; all collections without this
    #[arg(long, value_name = "NAMES")]
    collections: Option<CollectionNames>,
}

pub(super) fn run(args: KeygenArgs) -> Result<(), Failure> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)
        .map_err(|error| anyhow::anyhow!("no random numbers can be had: {error}"))?;
    let key = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret));
    let mut line = keys::line(&args.id, args.scope, &key).map_err(usage)?;
    if let Some(collections) = &args.collections {
        line = format!("{line}:{collections}");
    }
    // On standard error, so that programs can use the two lines as they are.
    let _ = writeln!(
        io::stderr(),
        "The first line is the key, shown this once: give it to `{}`.\n\
         The second belongs into the keys file (setting keys_file), and is no secret.",
        args.id
    );
    print(&format!("{key}\n{line}"))
}
