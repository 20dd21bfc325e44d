//! Questions to the scheduler that runs. Specification: answers.md 13 (ANS-88).

use std::io::IsTerminal;

use vc_kube::AnswersClient;
use vc_page::{
    CycleJson, ExplanationJson, ExplanationListJson, HyperNodeJson, ListJson, NodeJson, OneJson,
    QueueJson, RunJson, SummaryJson, TimelineJson, WaitingJobJson, WhatIfResultJson, cycles_text,
    hyper_nodes_text, hyper_nodes_wide_text, line_text, node_text, nodes_text, nodes_wide_text,
    queues_text, queues_wide_text, runs_text, summary_text, timeline_text, timeline_wide_text,
    what_if_text, why_list_text, why_list_wide_text, why_text, why_wide_text,
};

use crate::Answer;
use crate::args::{Arguments, Output, OutputFlag, Verb};
use crate::attempt::{AskFailure, Attempt};
use crate::output::show;
use crate::watch::watch;
use crate::what_if::{self, WhatIfRequest};
use crate::{bundle, html, ui};

/// Asks a scheduler, and prints the answer.
///
/// # Errors
/// There is no answer.
pub(crate) async fn ask(
    arguments: &Arguments,
    client: AnswersClient,
    attempt: &Attempt<'_>,
) -> Result<Answer, AskFailure> {
    let namespace = match (&arguments.namespace, arguments.all_namespaces) {
        (_, true) => None,
        (Some(namespace), false) => Some(namespace.as_str()),
        (None, false) => Some(client.namespace.as_str()),
    };
    let output = arguments.form();
    if let Verb::Ui { port, html } = &arguments.verb {
        check_way(&client, namespace, attempt).await?;
        attempt.report_answer();
        match html {
            Some(file) => html::save_answers(&client, file).await?,
            None => ui::serve(client, *port).await?,
        }
        return Ok(Answer::default());
    }
    if let Verb::Bundle { cycles, anonymize, output, file } = &arguments.verb {
        let file = output.as_ref().and_then(OutputFlag::file).or(file.as_deref());
        bundle::save(&client, file, *cycles, *anonymize).await?;
        return Ok(Answer::default());
    }
    if let Verb::WhatIf(words) = &arguments.verb {
        let WhatIfRequest { path, body } = what_if::request(words, namespace)?;
        let text = client.post(&path, body).await?;
        attempt.report_answer();
        let result: WhatIfResultJson = show(output, &text, what_if_text)?;
        return Ok(Answer::unplaced(!result.unplaced.is_empty()));
    }
    let namespace = match &arguments.verb {
        // Without -n the timeline is of all namespaces; that of the context limits lists of jobs.
        Verb::Timeline { .. } => arguments.namespace.as_deref(),
        _ => namespace,
    };
    let path = path(&arguments.verb, namespace)?;
    if arguments.is_repeated(std::io::stdout().is_terminal()) {
        let show = |text: &str| show_answer(arguments, text).map(drop);
        watch(client, &path, attempt, show).await?;
        return Ok(Answer::default());
    }
    let text = client.get(&path).await?;
    attempt.report_answer();
    Ok(show_answer(arguments, &text)?)
}

/// Asks something that needs a user, as each view of the page does.
///
/// # Errors
/// Another way may lead to a scheduler that answers. Any other refusal shows that somebody is there.
async fn check_way(
    client: &AnswersClient,
    namespace: Option<&str>,
    attempt: &Attempt<'_>,
) -> Result<(), AskFailure> {
    let jobs = match namespace {
        Some(namespace) => format!("namespaces/{}/explanations", part(namespace)),
        None => "explanations".to_owned(),
    };
    match client.get(&format!("{jobs}?limit=1")).await {
        Ok(_) => Ok(()),
        Err(error) => {
            let failure = AskFailure::from(error);
            if attempt.leads_on(&failure) { Err(failure) } else { Ok(()) }
        }
    }
}

/// Prints a document as the verb wants it.
pub(crate) fn show_answer(arguments: &Arguments, text: &str) -> Result<Answer, String> {
    let output = arguments.form();
    let is_wide = output == Output::Wide;
    let of_queues = if is_wide { queues_wide_text } else { queues_text };
    let of_nodes = if is_wide { nodes_wide_text } else { nodes_text };
    let of_job = if is_wide { why_wide_text } else { why_text };
    let of_hyper_nodes = if is_wide { hyper_nodes_wide_text } else { hyper_nodes_text };
    let of_timeline = if is_wide { timeline_wide_text } else { timeline_text };
    match &arguments.verb {
        Verb::Why { name: Some(_), .. } => {
            show(output, text, of_job).map(|it: ExplanationJson| Answer::waits(it.waits()))
        }
        Verb::Why { name: None, .. } => {
            let list: ExplanationListJson =
                show(output, text, |list: &ExplanationListJson| match is_wide {
                    true => why_list_wide_text(list),
                    false => why_list_text(list),
                })?;
            Ok(Answer::waits(list.items.iter().any(ExplanationJson::waits)))
        }
        Verb::Runs { .. } => shown::<ListJson<RunJson>>(output, text, runs_text),
        Verb::Queues { name: None } => shown::<ListJson<QueueJson>>(output, text, of_queues),
        Verb::Queues { name: Some(_) } => shown(output, text, |one: &OneJson<QueueJson>| {
            let items = vec![one.content.clone()];
            of_queues(&ListJson::new("QueueList", one.as_of.clone(), items))
        }),
        Verb::Line { .. } => shown::<ListJson<WaitingJobJson>>(output, text, line_text),
        Verb::Nodes { name: None } => shown::<ListJson<NodeJson>>(output, text, of_nodes),
        Verb::Nodes { name: Some(_) } => shown::<OneJson<NodeJson>>(output, text, node_text),
        Verb::Hypernodes => shown::<ListJson<HyperNodeJson>>(output, text, of_hyper_nodes),
        Verb::Top { .. } => shown::<OneJson<SummaryJson>>(output, text, summary_text),
        Verb::Timeline { .. } => shown::<OneJson<TimelineJson>>(output, text, of_timeline),
        Verb::Cycles { .. } => shown::<ListJson<CycleJson>>(output, text, cycles_text),
        Verb::WhatIf(_) | Verb::Ui { .. } | Verb::Bundle { .. } => Ok(Answer::default()),
    }
}

/// Prints a document about which nothing waits.
fn shown<T: serde::de::DeserializeOwned>(
    output: Output,
    text: &str,
    for_people: impl Fn(&T) -> String,
) -> Result<Answer, String> {
    show(output, text, for_people).map(|_: T| Answer::default())
}

/// The query for as many rows of a list as one answer may have (answers.md 11).
const LONGEST: &str = "limit=5000";

/// Returns the path of a question, below that of the version.
pub(crate) fn path(verb: &Verb, namespace: Option<&str>) -> Result<String, String> {
    Ok(match (verb, namespace) {
        (Verb::Why { name: Some(name), .. }, Some(namespace)) => {
            let (kind, name) = match name.split_once('/') {
                Some((kind, name)) => (Some(kind), name),
                None => (None, name.as_str()),
            };
            let kind = kind.map_or_else(String::new, |kind| format!("kind={}&", part(kind)));
            let (namespace, name) = (part(namespace), part(name));
            format!("namespaces/{namespace}/explanations/{name}?{kind}when=true")
        }
        (Verb::Why { name: Some(_), .. }, None) => {
            return Err("a job is in one namespace\nhint: give -n NAMESPACE, not -A".to_owned());
        }
        (Verb::Why { name: None, .. }, Some(namespace)) => {
            format!("namespaces/{}/explanations?{LONGEST}", part(namespace))
        }
        (Verb::Why { name: None, .. }, None) => format!("explanations?{LONGEST}"),
        (Verb::Runs { queue }, namespace) => {
            let place = namespace.map(|name| format!("namespaces/{}/", part(name)));
            let queue = queue.as_ref().map(|name| format!("&queue={}", part(name)));
            let (place, queue) = (place.unwrap_or_default(), queue.unwrap_or_default());
            format!("{place}runs?{LONGEST}{queue}")
        }
        (Verb::Queues { name: None }, _) => "queues".to_owned(),
        (Verb::Queues { name: Some(name) }, _) => format!("queues/{}", part(name)),
        (Verb::Line { queue }, _) => format!("queues/{}/line?{LONGEST}", part(queue)),
        (Verb::Nodes { name: None }, _) => format!("nodes?{LONGEST}"),
        (Verb::Nodes { name: Some(name) }, _) => format!("nodes/{}", part(name)),
        (Verb::Hypernodes, _) => format!("hypernodes?{LONGEST}"),
        (Verb::Top { .. }, _) => "summary".to_owned(),
        (Verb::Timeline { since, queue }, namespace) => {
            let queue = queue.as_ref().map(|name| format!("&queue={}", part(name)));
            let namespace = namespace.map(|name| format!("&namespace={}", part(name)));
            let (queue, namespace) = (queue.unwrap_or_default(), namespace.unwrap_or_default());
            format!("timeline?from={}{queue}{namespace}", part(since))
        }
        (Verb::Cycles { last }, _) => format!("cycles?last={last}"),
        (Verb::WhatIf(_), _) => "whatifs".to_owned(),
        (Verb::Ui { .. } | Verb::Bundle { .. }, _) => String::new(),
    })
}

/// Returns a name as part of a path.
pub(crate) fn part(name: &str) -> String {
    // Names of Kubernetes have no spaces; whatever else is given must not end the part.
    form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(name: Option<&str>) -> Verb {
        Verb::Why { name: name.map(str::to_owned), exit_code: false, watch: false }
    }

    #[test]
    fn ans_88_questions_are_paths() {
        let cases = [
            (why(Some("train")), Some("ml"), "namespaces/ml/explanations/train?when=true"),
            (
                why(Some("job/train")),
                Some("ml"),
                "namespaces/ml/explanations/train?kind=job&when=true",
            ),
            (
                why(Some("deployments.apps/web")),
                Some("ml"),
                "namespaces/ml/explanations/web?kind=deployments.apps&when=true",
            ),
            (
                why(Some("pod/a/../b")),
                Some("ml"),
                "namespaces/ml/explanations/a%2F..%2Fb?kind=pod&when=true",
            ),
            (why(None), Some("ml"), "namespaces/ml/explanations?limit=5000"),
            (why(None), None, "explanations?limit=5000"),
            (
                Verb::Line { queue: "a b?".to_owned() },
                Some("ml"),
                "queues/a%20b%3F/line?limit=5000",
            ),
            (Verb::Top { watch: false, once: false }, None, "summary"),
            (Verb::Hypernodes, None, "hypernodes?limit=5000"),
            (
                Verb::Timeline { since: "2h".to_owned(), queue: Some("a&b".to_owned()) },
                Some("ml"),
                "timeline?from=2h&queue=a%26b&namespace=ml",
            ),
            (Verb::Cycles { last: 7 }, None, "cycles?last=7"),
            (Verb::Runs { queue: None }, None, "runs?limit=5000"),
            (
                Verb::Runs { queue: Some("a&b".to_owned()) },
                Some("ml"),
                "namespaces/ml/runs?limit=5000&queue=a%26b",
            ),
        ];
        for (verb, namespace, expected) in cases {
            assert_eq!(path(&verb, namespace).unwrap(), expected);
        }
        assert!(path(&why(Some("train")), None).unwrap_err().contains("hint: "));
    }
}
