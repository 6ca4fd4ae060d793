//! `cognate serve`: flags made from the list of settings, and the start.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::cli::machine::Machine;
use crate::cli::{Failure, log, machine, print, usage};
use crate::http;
use crate::http::Settings;
use crate::http::settings::{LIST, Problem, RawValue, Setting, ValueShape};

/// Where clap stores the first unknown argument and all that follow.
const REST: &str = "rest";

/// The arguments of the command line. Values stay text; they are checked later, with those of the
/// settings file and the environment.
#[derive(Debug, Default)]
pub(super) struct ServeArgs {
    config: Option<PathBuf>,
    check: bool,
    /// Flags without their dashes, unknown ones included.
    flags: Vec<(String, Vec<String>)>,
}

pub(super) fn run(args: ServeArgs) -> Result<(), Failure> {
    let in_log = !args.check && log::is_json();
    serve(args).map_err(|failure| Failure { in_log, ..failure })
}

fn serve(args: ServeArgs) -> Result<(), Failure> {
    let _logs = if args.check { Some(log::set_up("warn").map_err(usage)?) } else { None };
    let others = &["config", "check", "help"];
    let mut loaded = machine::settings(args.config.as_deref(), args.flags, others);
    loaded.check(&Machine { thorough: args.check });
    if args.check {
        print(&loaded.to_toml())?;
        loaded.notes.iter().for_each(|note| eprintln!("{note}"));
    }
    refuse(&loaded.problems)?;
    if args.check {
        return Ok(());
    }
    let _logs = log::set_up(&loaded.settings.log).map_err(usage)?;
    http::serve(loaded.settings)
        .map_err(|error| Failure { code: error.exit_code(), ..Failure::from(error) })
}

/// Ends a command whose settings have problems, with all of them.
pub(super) fn refuse(problems: &[Problem]) -> Result<(), Failure> {
    if problems.is_empty() {
        return Ok(());
    }
    let problems: Vec<String> = problems.iter().map(|problem| format!("\n  {problem}")).collect();
    Err(usage(format!("the settings cannot be used:{}", problems.concat())))
}

impl Args for ServeArgs {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("Settings file [default: cognate.toml if it is there; env COGNATE_CONFIG]");
        let check = Arg::new("check")
            .long("check")
            .action(ArgAction::SetTrue)
            .help("Check settings, models, keys, addresses and logs, and stop")
            .long_help(
                "Check settings, models and keys, and whether the addresses are free and the logs of \
                 collections can be read; print the settings in force as TOML and every problem, and \
                 stop. Nothing is changed",
            );
        let rest = Arg::new(REST).num_args(0..).allow_hyphen_values(true).hide(true);
        let flags = LIST.iter().map(flag);
        command.arg(config).arg(check).args(flags).arg(rest)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(setting: &'static Setting) -> Arg {
    let shown = match (setting.read)(&Settings::default()) {
        RawValue::One(text) => text,
        RawValue::Many(texts) if texts.is_empty() => "none".to_owned(),
        RawValue::Many(texts) => texts.join(","),
    };
    let range = setting.rule.range().map(|range| format!("; {range}")).unwrap_or_default();
    let sentence = setting.help.trim().trim_end_matches('.');
    let help = format!("{sentence} [default: {shown}{range}; env {}]", setting.variable());
    let name = match setting.rule.shape {
        ValueShape::Count(..) => "NUMBER",
        ValueShape::Bytes(..) => "SIZE",
        ValueShape::Choice(_) => "WORD",
        ValueShape::Switch => "BOOL",
        ValueShape::Text(form) | ValueShape::List(form) => form,
    };
    let arg = Arg::new(setting.key).long(setting.flag()).value_name(name);
    let arg = arg.help_heading(setting.section).help(setting.summary()).long_help(help);
    let arg = arg.action(ArgAction::Append).num_args(1).allow_negative_numbers(true);
    match setting.rule.shape {
        ValueShape::Switch => {
            arg.num_args(0..=1).require_equals(true).default_missing_value("true")
        }
        _ => arg,
    }
}

impl FromArgMatches for ServeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.config = matches.get_one("config").cloned().or(self.config.take());
        self.check |= matches.get_flag("check");
        for setting in LIST {
            if let Some(values) = matches.get_many::<String>(setting.key) {
                self.add(&setting.flag(), values.cloned());
            }
        }
        let rest: Vec<&String> = matches.get_many(REST).into_iter().flatten().collect();
        let Some((unknown, rest)) = rest.split_first() else {
            return Ok(());
        };
        if !unknown.starts_with('-') {
            let what = format!("`{}` is no flag\n", unknown.escape_debug());
            return Err(clap::Error::raw(ErrorKind::UnknownArgument, what));
        }
        // Recorded, to be reported with all other problems; later flags may be known.
        let (name, value) = match unknown.split_once('=') {
            Some((name, _)) => (name, true),
            None => (unknown.as_str(), false),
        };
        self.add(name.trim_start_matches('-'), std::iter::empty());
        let separate = !value && rest.first().is_some_and(|next| !next.starts_with('-'));
        let rest = rest.iter().skip(usize::from(separate));
        let command = Self::augment_args(Command::new("serve").bin_name("cognate serve"));
        let again = std::iter::once("serve").chain(rest.map(|text| text.as_str()));
        self.update_from_arg_matches(&command.try_get_matches_from(again)?)
    }
}

impl ServeArgs {
    fn add(&mut self, flag: &str, values: impl Iterator<Item = String>) {
        match self.flags.iter_mut().find(|(known, _)| known == flag) {
            Some((_, before)) => before.extend(values),
            None => self.flags.push((flag.to_owned(), values.collect())),
        }
    }
}
