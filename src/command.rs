//! The commands of the binary: which one an argument list asks for. Without a command it schedules.
//! Specification: core.md 1.1.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Arg, Command};

use crate::flags::{Flags, command};

/// What the arguments ask for.
#[derive(Debug)]
pub enum RequestedCommand {
    /// No command: the daemon, or `--version`.
    Schedule(Box<Flags>),
    /// `check`: what a configuration file means.
    Check(Box<Flags>),
}

/// Name and one line of each command.
const COMMANDS: &[(&str, &str)] = &[
    ("check", "what a configuration file means, with every error and warning; check --help"),
    ("help", "this text"),
];

impl RequestedCommand {
    /// Reads the arguments, of which the first is the program's name.
    ///
    /// # Errors
    /// An unknown command or flag, a bad value; also `--help`, whose text is the error's.
    pub fn of(mut args: Vec<OsString>) -> Result<RequestedCommand, clap::Error> {
        match args.get(1).and_then(|arg| arg.to_str()) {
            Some("check") => {
                args.remove(1);
                check(args).map(|flags| RequestedCommand::Check(Box::new(flags)))
            }
            _ => {
                if args.get(1).is_some_and(|arg| arg == "help") {
                    args[1] = "--help".into();
                }
                let (flags, words) = Flags::parse_with(daemon(), args)?;
                match words.first() {
                    None => Ok(RequestedCommand::Schedule(Box::new(flags))),
                    Some(word) => Err(unknown(word)),
                }
            }
        }
    }
}

fn daemon() -> Command {
    let rows = COMMANDS.iter().map(|(name, about)| format!("  {name:<8}{about}\n"));
    let list: String = rows.collect();
    let usage = "vc-scheduler [FLAGS]\n       vc-scheduler check FILE";
    command("vc-scheduler")
        .override_usage(usage)
        .before_help(format!("Commands, without one it schedules:\n{list}"))
        .after_help(
            "Examples, in the folder of the project:\n  \
             vc-scheduler check config/volcano-scheduler.conf\n  \
             vc-scheduler --kubeconfig ~/.kube/config --scheduler-conf config/volcano-scheduler.conf &",
        )
}

/// The flags that `check` reads; it accepts the others, so that a Deployment's arguments can be used.
const OF_CHECK: &[&str] = &["scheduler-conf", "allow-missing-plugins"];

fn check(args: Vec<OsString>) -> Result<Flags, clap::Error> {
    let about = "What a configuration file means: what is in force, every error and every warning with \
        its remedy. Exits with 1 on an error. Reads nothing but the file; accepts the other flags of \
        vc-scheduler.";
    let mut shown = command("vc-scheduler check")
        .about(about)
        .mut_args(|arg| {
            let is_read = OF_CHECK.contains(&arg.get_id().as_str());
            arg.hide(!is_read)
        })
        .override_usage("vc-scheduler check FILE\n       vc-scheduler check --scheduler-conf FILE")
        .after_help(
            "Examples, in the folder of the project:\n  \
             vc-scheduler check config/volcano-scheduler.conf\n  \
             vc-scheduler check --scheduler-conf examples/queues/scheduler.conf",
        );
    let (mut flags, words) = Flags::parse_with(shown.clone(), args)?;
    match &words[..] {
        [] => Ok(flags),
        [file] if flags.scheduler_conf.as_os_str().is_empty() => {
            flags.scheduler_conf = PathBuf::from(file);
            Ok(flags)
        }
        _ => {
            let message = format!("more than one file: {}", words.join(", "));
            Err(shown.error(ErrorKind::TooManyValues, message))
        }
    }
}

/// An argument that is no flag and no command. It must never start the daemon: who misspells `check`
/// does not mean to schedule.
fn unknown(word: &str) -> clap::Error {
    let names: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
    let mut command = daemon();
    let is_flag = |arg: &&Arg| arg.get_long() == Some(word);
    let hint = match vc_conf::nearest(word, names.iter().copied()) {
        Some(near) if near == word => format!("write the command first: vc-scheduler {near}"),
        Some(near) => format!("did you mean vc-scheduler {near}?"),
        None if command.get_arguments().any(|arg| is_flag(&arg)) => {
            format!("did you mean --{word}?")
        }
        None if matches!(word, "true" | "false") => {
            "a flag and its boolean are one argument, as in --leader-elect=false".to_owned()
        }
        None => format!("commands are: {}", names.join(", ")),
    };
    let message = format!("unknown command {word:?}\nhint: {hint}");
    command.error(ErrorKind::InvalidSubcommand, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(args: &[&str]) -> Result<RequestedCommand, clap::Error> {
        RequestedCommand::of(["vc-scheduler"].iter().chain(args).map(Into::into).collect())
    }

    fn refused(args: &[&str]) -> String {
        let error = asked(args).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{args:?}");
        error.to_string()
    }

    #[test]
    fn core_1_what_a_shell_would_have_taken_is_ignored() {
        for args in [&["--logtostderr", "2>&1"][..], &["2>&1", "-v=3", ""], &[]] {
            assert!(matches!(asked(args), Ok(RequestedCommand::Schedule(_))), "{args:?}");
        }
    }

    #[test]
    fn an_unknown_word_never_schedules() {
        for (args, hint) in [
            (&["chek"][..], "did you mean vc-scheduler check?"),
            (&["--leader-elect=false", "chck", "x.conf"], "did you mean vc-scheduler check?"),
            (&["--scheduler-conf", "x", "check"], "write the command first: vc-scheduler check"),
            (&["version"], "did you mean --version?"),
            (&["run", "x"], "commands are: check, help"),
            (&["--leader-elect", "false"], "as in --leader-elect=false"),
        ] {
            let text = refused(args);
            assert!(text.starts_with("error: unknown command \""), "{text}");
            assert!(text.contains("\nhint: ") && text.contains(hint), "{text}");
        }
    }

    #[test]
    fn check_takes_the_file_as_it_comes() {
        let file = |args: &[&str]| match asked(args) {
            Ok(RequestedCommand::Check(flags)) => flags.scheduler_conf.display().to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(file(&["check", "a.conf"]), "a.conf");
        assert_eq!(file(&["check", "--scheduler-conf=a.conf"]), "a.conf");
        assert_eq!(file(&["check", "-v=3", "--scheduler-conf", "a.conf", "2>&1"]), "a.conf");
        assert_eq!(file(&["check", "--allow-missing-plugins", "a.conf"]), "a.conf");
        assert_eq!(file(&["check"]), "");
        assert!(refused(&["check", "a", "b"]).contains("more than one file: a, b"));
        assert!(refused(&["check", "a", "--scheduler-conf=b"]).contains("more than one file"));
    }

    #[test]
    fn help_lists_the_commands_and_check_has_its_own() {
        for args in [&["--help"][..], &["help"], &["-h"]] {
            let error = asked(args).unwrap_err();
            assert_eq!(error.exit_code(), 0);
            let text = error.to_string();
            assert!(text.contains("  check   what a configuration file means"), "{text}");
            assert!(text.contains("--leader-elect-lease-duration"), "{text}");
        }
        let error = asked(&["check", "--help"]).unwrap_err();
        assert_eq!(error.exit_code(), 0);
        let text = error.to_string();
        assert!(text.contains("vc-scheduler check FILE"), "{text}");
        assert!(text.contains("--allow-missing-plugins"), "{text}");
        assert!(!text.contains("--leader-elect") && !text.contains("Commands"), "{text}");
    }
}
