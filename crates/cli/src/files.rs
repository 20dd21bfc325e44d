//! Questions about files with the objects of a cluster: what `vcsim why` does.

use vc_conf::AllowMissing;
use vc_sim::KubeletMode;
use vc_sim::run::{RunLimit, RunOptions};
use vc_sim::why::{WhyOptions, why};
use vc_text::escape_lines;

use crate::args::{Arguments, Output, Verb};
use crate::output::print;

/// Answers, and prints the answer. Returns whether what was asked about waits.
///
/// # Errors
/// There is no answer; the text says why.
pub(crate) fn ask(arguments: &Arguments) -> Result<bool, String> {
    let Verb::Why { name, .. } = &arguments.verb else {
        return Err("--from answers why alone\nhint: vcsim run shows queues and nodes".to_owned());
    };
    let run = RunOptions {
        scheduler_conf: arguments.scheduler_conf.clone(),
        allow_missing: AllowMissing::Nothing,
        until: RunLimit::Cycles(1),
        kubelet: KubeletMode::None,
        paths: arguments.from.clone(),
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
    Ok(answered.waits())
}
