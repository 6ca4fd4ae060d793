//! Shell completions and manual pages, `cognate completions` and `cognate man`, made from the
//! flags.

use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::{Failure, command, print, usage};

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// Shell to write for
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Command, such as `serve` or `eval sts` [default: cognate itself]
    command: Vec<String>,
}

pub(super) fn completions(args: CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), crate::PROGRAM, &mut script);
    print(&String::from_utf8(script)?)
}

pub(super) fn man(args: ManArgs) -> Result<(), Failure> {
    // Commands know their full names only when they are built.
    let mut all = command();
    all.build();
    let mut found = &all;
    for name in &args.command {
        let Some(inner) = found.find_subcommand(name) else {
            let (found, name) = (found.get_name(), name.escape_debug());
            return Err(usage(format!("`{found}` has no command `{name}`")));
        };
        found = inner;
    }
    // The title of a page is one word.
    let title = found.get_bin_name().unwrap_or(found.get_name()).replace(' ', "-");
    let version = all.get_version().unwrap_or_default();
    let source = format!("{} {version}", all.get_name());
    let page = Man::new(found.clone()).title(title.to_uppercase()).source(source);
    let mut text = Vec::new();
    page.render(&mut text)?;
    print(&String::from_utf8(text)?)
}
