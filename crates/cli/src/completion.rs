//! Completion of the command line. kubectl runs `kubectl_complete-vc` with the words behind
//! `kubectl vc`, and that script runs `kubectl-vc __complete` with them. The last word is the one
//! to complete. Verbs, flags and values come from the declaration of the arguments, names from the
//! scheduler. Specification: answers.md 13 (ANS-112).

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Arg, ArgAction, Command, CommandFactory, Parser, ValueHint};
use serde_json::Value;
use vc_kube::{AnswersAccess, AnswersClient, AnswersWay, has_answers_group};

use crate::args::Arguments;
use crate::ask::path;
use crate::output::print;

/// The verb that the script calls. It is not declared, so no help lists it.
pub(crate) const COMPLETE: &str = "__complete";
/// Time after which the scheduler is not waited for any more.
const LONGEST_QUESTION: Duration = Duration::from_secs(1);
/// Query of a list of as many names as one answer may hold.
const LONGEST_LIST: &str = "?limit=5000";
/// Bits of cobra's `ShellCompDirective`: the shell does what it does by default, it puts no space
/// behind the word, and it offers no files.
const DEFAULT: u8 = 0;
const NO_SPACE: u8 = 2;
const NO_FILES: u8 = 4;

/// Prints what may stand in place of the last word.
pub(crate) fn print_candidates(words: &[String]) {
    let mut program = Arguments::command();
    program.build();
    let (word, typed) = match words.split_last() {
        Some((word, typed)) => (word.as_str(), typed),
        None => ("", words),
    };
    let line = TypedLine::read(&program, typed);
    let completion = line.map_or_else(Completion::nothing, |line| line.complete(word));
    print(&completion.text());
}

/// A word that may stand there, with a description or an empty text.
struct Candidate {
    word: String,
    about: String,
}

/// What the shell offers.
struct Completion {
    candidates: Vec<Candidate>,
    directive: u8,
}

impl Completion {
    fn nothing() -> Self {
        Self { candidates: Vec::new(), directive: NO_FILES }
    }

    /// Returns the words that begin with the one that was typed.
    fn of(candidates: impl Iterator<Item = Candidate>, typed: &str) -> Self {
        let candidates = candidates.filter(|candidate| candidate.word.starts_with(typed)).collect();
        Self { candidates, ..Self::nothing() }
    }

    /// Returns the lines that kubectl reads.
    fn text(&self) -> String {
        let line = |Candidate { word, about }: &Candidate| match about.is_empty() {
            true => format!("{word}\n"),
            false => format!("{word}\t{about}\n"),
        };
        let lines: String = self.candidates.iter().map(line).collect();
        format!("{lines}:{}\n", self.directive)
    }
}

/// Returns the first line of a description, or an empty text.
fn short_about(about: Option<impl ToString>) -> String {
    let about = about.map(|about| about.to_string()).unwrap_or_default();
    about.lines().next().unwrap_or_default().to_owned()
}

fn takes_value(flag: &Arg) -> bool {
    flag.get_action().takes_values()
}

/// The words before the one to complete.
struct TypedLine<'a> {
    /// The verb. Without one, the program.
    command: &'a Command,
    /// Flags with their values.
    flags: Vec<(&'a Arg, Option<&'a str>)>,
    /// The flag whose value is the next word.
    open_flag: Option<&'a Arg>,
    /// Number of arguments of the verb that are no flags.
    n_positionals: usize,
    /// True behind `--`, where no word is a flag.
    has_ended_flags: bool,
}

impl<'a> TypedLine<'a> {
    /// Reads words. Returns `None` if one stands for a verb and is none.
    fn read(program: &'a Command, words: &'a [String]) -> Option<Self> {
        let mut line = Self {
            command: program,
            flags: Vec::new(),
            open_flag: None,
            n_positionals: 0,
            has_ended_flags: false,
        };
        for word in words {
            line.add_word(word)?;
        }
        Some(line)
    }

    /// Adds the next word. Returns `None` if it stands for a verb and is none.
    fn add_word(&mut self, word: &'a str) -> Option<()> {
        if let Some(flag) = self.open_flag.take() {
            self.flags.push((flag, Some(word)));
        } else if self.has_ended_flags || word == "-" || !word.starts_with('-') {
            match self.command.has_subcommands() {
                true => self.command = self.command.find_subcommand(word)?,
                false => self.n_positionals += 1,
            }
        } else if word == "--" {
            self.has_ended_flags = true;
        } else if word.starts_with("--") {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            self.add_flag(self.find_flag(name), value);
        } else {
            self.add_letters(&word[1..]);
        }
        Some(())
    }

    /// Adds a flag. One that is not known is left out.
    fn add_flag(&mut self, flag: Option<&'a Arg>, value: Option<&'a str>) {
        match flag {
            Some(flag) if value.is_none() && takes_value(flag) => self.open_flag = Some(flag),
            Some(flag) => self.flags.push((flag, value)),
            None => {}
        }
    }

    /// Adds flags of one letter. The last one may have its value behind it: `-Anml`.
    fn add_letters(&mut self, letters: &'a str) {
        for (start, letter) in letters.char_indices() {
            let flag = self.find_flag(&format!("-{letter}"));
            let rest = &letters[start + letter.len_utf8()..];
            if flag.is_some_and(takes_value) {
                let value = rest.strip_prefix('=').unwrap_or(rest);
                return self.add_flag(flag, (!value.is_empty()).then_some(value));
            }
            self.add_flag(flag, None);
        }
    }

    /// Returns the flag that is written like this: `-o`, `--output`.
    fn find_flag(&self, written: &str) -> Option<&'a Arg> {
        let command = self.command;
        match written.strip_prefix("--") {
            Some(name) => command.get_arguments().find(|flag| flag.get_long() == Some(name)),
            None => {
                let letter = written.chars().nth(1)?;
                command.get_arguments().find(|flag| flag.get_short() == Some(letter))
            }
        }
    }

    /// Returns what may stand in place of this word.
    fn complete(&self, word: &str) -> Completion {
        if let Some(flag) = self.open_flag {
            return self.complete_value(flag, word);
        }
        if word.starts_with('-') && !self.has_ended_flags {
            return match word.split_once('=') {
                // The shell keeps the flag and offers the values alone.
                Some((name, value)) => self.complete_value_of(self.find_flag(name), value),
                None => Completion::of(self.flags_to_give(), word),
            };
        }
        if self.command.has_subcommands() {
            return Completion::of(self.verbs(), word);
        }
        self.complete_value_of(self.command.get_positionals().nth(self.n_positionals), word)
    }

    fn verbs(&self) -> impl Iterator<Item = Candidate> {
        let shown = self.command.get_subcommands().filter(|verb| !verb.is_hide_set());
        shown.map(|verb| Candidate {
            word: verb.get_name().to_owned(),
            about: short_about(verb.get_about()),
        })
    }

    /// Returns the flags that may be added to the line: each once, but for those that take a list.
    fn flags_to_give(&self) -> impl Iterator<Item = Candidate> {
        let is_given = move |flag: &Arg| {
            let takes_list = matches!(flag.get_action(), ArgAction::Append | ArgAction::Count);
            !takes_list && self.flags.iter().any(|(given, _)| given.get_id() == flag.get_id())
        };
        self.command.get_arguments().filter_map(move |flag| {
            let name = flag.get_long().filter(|_| !flag.is_hide_set() && !is_given(flag))?;
            Some(Candidate { word: format!("--{name}"), about: short_about(flag.get_help()) })
        })
    }

    fn complete_value_of(&self, argument: Option<&Arg>, word: &str) -> Completion {
        argument.map_or_else(Completion::nothing, |argument| self.complete_value(argument, word))
    }

    /// Returns the values of an argument that begin with this word.
    fn complete_value(&self, argument: &Arg, word: &str) -> Completion {
        if argument.get_value_hint() == ValueHint::AnyPath {
            return Completion { directive: DEFAULT, ..Completion::nothing() };
        }
        let value_name = argument.get_value_names().and_then(|names| names.first());
        if let Some((kind, end)) = value_name.and_then(|name| NameKind::of(name.as_str())) {
            return self.complete_name(kind, end, word);
        }
        let known = argument.get_possible_values();
        let shown = known.iter().filter(|value| !value.is_hide_set()).map(|value| Candidate {
            word: value.get_name().to_owned(),
            about: short_about(value.get_help()),
        });
        Completion::of(shown, word)
    }

    /// Returns the names that begin with this word. `end` stands behind each.
    fn complete_name(&self, kind: NameKind, end: &str, word: &str) -> Completion {
        let list = self.question(kind).and_then(|question| fetch_in_time(question, kind));
        let list = list.unwrap_or_default();
        let is_job = kind == NameKind::Job;
        let job_kind = word.split_once('/').filter(|_| is_job).map(|(job_kind, _)| job_kind);
        let named = list["items"].as_array().into_iter().flatten().filter_map(|item| {
            let name = kind.name_of(item, job_kind).filter(|name| is_name(name))?;
            let word = match job_kind {
                Some(job_kind) => format!("{job_kind}/{name}{end}"),
                None => format!("{name}{end}"),
            };
            Some(Candidate { word, about: String::new() })
        });
        let completion = Completion::of(named, word);
        let goes_on = !end.is_empty() && !completion.candidates.is_empty();
        let directive = if goes_on { NO_FILES | NO_SPACE } else { NO_FILES };
        Completion { directive, ..completion }
    }

    /// Returns the question that lists names, with the flags of the line that say who is asked.
    /// Returns `None` if no scheduler is asked, or if a flag is wrong. Jobs of all namespaces are
    /// not listed either, as `why NAME` does not take `-A`.
    fn question(&self, kind: NameKind) -> Option<Arguments> {
        let flags = self.flags.iter().filter(|(flag, _)| flag.is_global_set());
        let flags = flags.filter_map(|(flag, value)| {
            let name = flag.get_long()?;
            Some(value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}")))
        });
        let words = ["kubectl vc", kind.verb()].map(str::to_owned).into_iter().chain(flags);
        let question = Arguments::try_parse_from(words).and_then(Arguments::check).ok()?;
        let asks_nobody = question.local || !question.from.is_empty();
        let is_of_all = kind == NameKind::Job && question.all_namespaces;
        (!asks_nobody && !is_of_all).then_some(question)
    }
}

/// What the scheduler knows by name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameKind {
    Job,
    Queue,
    Node,
}

impl NameKind {
    /// Returns what an argument names, by the name of its value in the help, and the letter that
    /// ends the name: `NODE=COUNT` is a node with `=` behind it. Returns `None` if the value is no
    /// name that the scheduler knows.
    fn of(value_name: &str) -> Option<(Self, &str)> {
        let length = value_name.find(['=', '.']).unwrap_or(value_name.len());
        let (name, rest) = value_name.split_at(length);
        let kind = match name {
            "JOB" => Self::Job,
            "QUEUE" => Self::Queue,
            "NODE" => Self::Node,
            _ => return None,
        };
        Some((kind, &rest[..rest.len().min(1)]))
    }

    /// Returns the verb that lists all of this kind.
    fn verb(self) -> &'static str {
        match self {
            Self::Job => "why",
            Self::Queue => "queues",
            Self::Node => "nodes",
        }
    }

    /// Returns the name of an item of the list. A job has the name of its controller, else of its
    /// PodGroup or pod. With `job_kind` it has the name of the object of this kind, or none.
    fn name_of<'v>(self, item: &'v Value, job_kind: Option<&str>) -> Option<&'v str> {
        if self != Self::Job {
            return item["name"].as_str();
        }
        let subject = &item["subject"];
        let is_wanted = |field: &str| {
            let kind = subject[field].as_str().unwrap_or_default();
            job_kind.is_none_or(|wanted| wanted.eq_ignore_ascii_case(kind))
        };
        let controller = subject["job"].as_str().filter(|_| is_wanted("jobKind"));
        controller.or_else(|| subject["name"].as_str().filter(|_| is_wanted("kind")))
    }
}

/// True for what Kubernetes takes as a name. Another text of a server could give orders to the
/// shell or to the terminal.
fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    text.starts_with(|letter: char| letter.is_ascii_alphanumeric()) && text.chars().all(is_part)
}

/// Returns the list of a scheduler. Returns `None` if there is no answer in time.
fn fetch_in_time(question: Arguments, kind: NameKind) -> Option<Value> {
    let (sender, receiver) = mpsc::channel();
    // A plugin of the kubeconfig may block for longer. The process does not wait for this thread.
    thread::spawn(move || sender.send(fetch_list(&question, kind)));
    receiver.recv_timeout(LONGEST_QUESTION).ok().flatten()
}

fn fetch_list(question: &Arguments, kind: NameKind) -> Option<Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let text = runtime.block_on(fetch_from_scheduler(question, kind))?;
    serde_json::from_str(&text).ok()
}

/// Asks the place that is named, else the API server's group, else the Service of the chart. A
/// Service or pod that is merely found does not get the user's token here: it would have to be
/// named to the user, and nothing can be printed.
async fn fetch_from_scheduler(question: &Arguments, kind: NameKind) -> Option<String> {
    let access = question.access();
    if !question.names_place()
        && matches!(has_answers_group(&access).await, Ok(true))
        && let Some(list) = fetch_by(question, kind, &access, AnswersWay::ApiServer).await
    {
        return Some(list);
    }
    fetch_by(question, kind, &access, access.way()).await
}

async fn fetch_by(
    question: &Arguments,
    kind: NameKind,
    access: &AnswersAccess,
    way: AnswersWay,
) -> Option<String> {
    let client = AnswersClient::by(access, way).await.ok()?;
    let namespace = question.namespace.as_deref().unwrap_or(&client.namespace);
    let path = path(&question.verb, Some(namespace)).ok()?;
    // All queues are one answer.
    let range = if kind == NameKind::Queue { "" } else { LONGEST_LIST };
    client.get(&format!("{path}{range}")).await.ok()
}
