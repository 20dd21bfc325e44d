//! Questions about files with the objects of a cluster: what `vcsim why` and `vcsim what-if` do.

use vc_conf::AllowMissing;
use vc_sim::KubeletMode;
use vc_sim::run::{RunLimit, RunOptions};
use vc_sim::what_if::{WhatIfOptions, what_if};
use vc_sim::why::{WhyOptions, why};
use vc_text::escape_lines;

use crate::Answer;
use crate::args::{Arguments, Output, Verb, WhatIfWords};
use crate::output::print;

/// Answers, and prints the answer.
///
/// # Errors
/// There is no answer; the text says why.
pub(crate) fn ask(arguments: &Arguments) -> Result<Answer, String> {
    let run = RunOptions {
        scheduler_conf: arguments.scheduler_conf.clone(),
        allow_missing: AllowMissing::Nothing,
        until: RunLimit::Cycles(1),
        kubelet: KubeletMode::None,
        paths: arguments.from.clone(),
    };
    let name = match &arguments.verb {
        Verb::Why { name, .. } => name,
        Verb::WhatIf(words) => return suppose(run, words, arguments.output),
        _ => {
            let hint = "vcsim run shows queues and nodes";
            return Err(format!("--from answers why and what-if alone\nhint: {hint}"));
        }
    };
    let namespace = arguments.namespace.clone().filter(|_| !arguments.all_namespaces);
    let options = WhyOptions { run, namespace, name: name.clone() };
    let answered = why(&options).map_err(|error| error.to_string())?;
    for problem in &answered.problems {
        eprintln!("{}", escape_lines(problem));
    }
    match arguments.output {
        Output::Text => print(&answered.text()),
        Output::Json => print(&crate::output::json(answered.json())?),
        Output::Yaml => print(&crate::output::yaml(answered.json())?),
    }
    Ok(Answer::waits(answered.waits()))
}

/// Answers what would happen, as `vcsim what-if` does.
fn suppose(run: RunOptions, words: &WhatIfWords, output: Output) -> Result<Answer, String> {
    let options = WhatIfOptions { run, files: words.filename.clone(), flags: words.changes()? };
    let answered = what_if(&options).map_err(|error| error.to_string())?;
    for problem in &answered.problems {
        eprintln!("{}", escape_lines(problem));
    }
    match output {
        Output::Text => print(&answered.text()),
        Output::Json => print(&crate::output::json(&answered.json())?),
        Output::Yaml => print(&crate::output::yaml(&answered.json())?),
    }
    Ok(Answer::unplaced(answered.is_unplaced()))
}
