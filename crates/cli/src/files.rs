//! Questions about files with the objects of a cluster: what `vcsim why` and `vcsim what-if` do.

use std::path::Path;

use vc_conf::AllowMissing;
use vc_page::{PageRange, Question, StateSource, why_text, why_wide_text};
use vc_sim::KubeletMode;
use vc_sim::asked::{Asked, ask};
use vc_sim::replay::{ReplayOptions, replay};
use vc_sim::run::{RunLimit, RunOptions};
use vc_sim::what_if::{WhatIfOptions, what_if};
use vc_sim::why::{WhyOptions, why};
use vc_text::escape_lines;

use crate::args::{Arguments, Output, Verb, WhatIfWords};
use crate::ask::show_answer;
use crate::output::print;
use crate::{Answer, html};

/// Answers, and prints the answer.
///
/// # Errors
/// There is no answer; the text says why.
pub(crate) fn ask_files(arguments: &Arguments) -> Result<Answer, String> {
    if let [file] = &arguments.from[..]
        && file.to_string_lossy().ends_with(".tar.gz")
    {
        return from_bundle(arguments, file);
    }
    let run = RunOptions {
        scheduler_conf: arguments.scheduler_conf.clone(),
        // A cluster may run more than this version knows; what is left out is told.
        allow_missing: match arguments.local {
            true => AllowMissing::Everything,
            false => AllowMissing::Nothing,
        },
        until: RunLimit::Cycles(1),
        kubelet: KubeletMode::None,
        keeps_history: false,
        paths: arguments.from.clone(),
        source: match arguments.local {
            true => StateSource::Local,
            false => StateSource::File,
        },
    };
    let name = match &arguments.verb {
        Verb::Why { name, .. } => name,
        Verb::WhatIf(words) => return suppose(run, words, arguments.form()),
        Verb::Ui { html: Some(file), .. } => return html::save_of_files(&run, file),
        verb => return of_cluster(arguments, &run, verb),
    };
    let namespace = arguments.namespace.clone().filter(|_| !arguments.all_namespaces);
    let options = WhyOptions { run, namespace, name: name.clone() };
    let answered = why(&options).map_err(|error| error.to_string())?;
    for problem in &answered.problems {
        eprintln!("{}", escape_lines(problem));
    }
    match arguments.form() {
        Output::Text | Output::Wide => print(&answered.text()),
        Output::Json => print(&crate::output::json(answered.json())?),
        Output::Yaml => print(&crate::output::yaml(answered.json())?),
    }
    Ok(Answer::waits(answered.waits()))
}

/// Says that a question is one for a scheduler that runs.
pub(crate) fn of_process(flag: &str) -> String {
    let hint = "leave it out to ask the scheduler";
    format!("{flag} answers no question about what a scheduler remembers\nhint: {hint}")
}

/// Answers a question about the whole cluster.
fn of_cluster(arguments: &Arguments, run: &RunOptions, verb: &Verb) -> Result<Answer, String> {
    let range = PageRange { limit: usize::MAX, ..PageRange::default() };
    let question = match verb {
        Verb::Runs { queue } => {
            let namespace = arguments.namespace.clone().filter(|_| !arguments.all_namespaces);
            Question::Runs { namespace, queue: queue.clone(), range }
        }
        Verb::Queues { name: None } => Question::Queues,
        Verb::Queues { name: Some(name) } => Question::Queue { name: name.clone() },
        Verb::Line { queue } => Question::Line { queue: queue.clone(), range },
        Verb::Nodes { name: None } => Question::Nodes { range, label: None },
        Verb::Nodes { name: Some(name) } => Question::Node { name: name.clone() },
        Verb::Hypernodes => Question::HyperNodes { range },
        Verb::Top { .. } => Question::Summary,
        _ => return Err(of_process("--from")),
    };
    let Asked { document, problems } = ask(run, &question).map_err(|error| error.to_string())?;
    for problem in &problems {
        eprintln!("{}", escape_lines(problem));
    }
    let text =
        serde_json::to_string(&document).map_err(|error| format!("cannot print: {error}"))?;
    show_answer(arguments, &text)
}

/// Answers why a job waits after the last cycle of a bundle, or writes the page about it.
fn from_bundle(arguments: &Arguments, file: &Path) -> Result<Answer, String> {
    if let Verb::Ui { html: Some(page), .. } = &arguments.verb {
        return html::save_of_bundle(file, page);
    }
    let Verb::Why { name: Some(name), .. } = &arguments.verb else {
        let hint = "vcsim replay decides it again";
        return Err(format!("a bundle answers why NAME and ui --html alone\nhint: {hint}"));
    };
    let (kind, name) = match name.split_once('/') {
        Some((kind, name)) => (Some(kind.to_lowercase()), name),
        None => (None, name.as_str()),
    };
    let why = match arguments.namespace.as_ref().filter(|_| !arguments.all_namespaces) {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    let (file, why) = (file.to_owned(), Some(why));
    let options = ReplayOptions {
        file,
        at: None,
        until: None,
        why,
        kind,
        conf: None,
        closed: false,
        to_scenario: None,
        anonymize: false,
        to_bundle: None,
        to_objects: None,
    };
    let replayed = replay(&options).map_err(|error| error.to_string())?;
    if !replayed.is_same() {
        eprint!("{}", escape_lines(&replayed.text()));
    }
    if let Some(note) = replayed.unrecorded_note() {
        eprintln!("{note}");
    }
    let Some(explanation) = replayed.explanation() else { return Ok(Answer::default()) };
    match arguments.form() {
        Output::Text => print(&why_text(explanation)),
        Output::Wide => print(&why_wide_text(explanation)),
        Output::Json => print(&crate::output::json(explanation)?),
        Output::Yaml => print(&crate::output::yaml(explanation)?),
    }
    Ok(Answer::waits(explanation.waits()))
}

/// Answers what would happen, as `vcsim what-if` does.
fn suppose(run: RunOptions, words: &WhatIfWords, output: Output) -> Result<Answer, String> {
    let options = WhatIfOptions { run, files: words.filename.clone(), flags: words.changes()? };
    let answered = what_if(&options).map_err(|error| error.to_string())?;
    for problem in &answered.problems {
        eprintln!("{}", escape_lines(problem));
    }
    match output {
        Output::Text | Output::Wide => print(&answered.text()),
        Output::Json => print(&crate::output::json(&answered.json())?),
        Output::Yaml => print(&crate::output::yaml(&answered.json())?),
    }
    Ok(Answer::unplaced(answered.is_unplaced()))
}
