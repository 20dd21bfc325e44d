//! `kubectl vc why --watch`, `top --watch` and `top` on a terminal: the answer again whenever something in it has
//! changed.
//! Specification: answers.md 13.

use std::time::Duration;

use serde_json::Value;
use vc_kube::AnswersClient;

use crate::attempt::{AskFailure, Attempt, print_line};
use crate::leader::{LeaderClient, is_of_lost_leader};

/// Time between two questions.
const PAUSE: Duration = Duration::from_secs(2);
/// Fields that change while nothing happens.
const TIME_FIELDS: [&str; 5] = ["asOf", "waitingSeconds", "earliest", "expected", "latest"];

/// Asks until the process ends, and shows each answer that is new. Problems after the first answer are reported
/// once each. A way to a pod follows the leader: after a problem the next pod is asked.
///
/// # Errors
/// There is no first answer, or one cannot be shown.
pub(crate) async fn watch(
    client: AnswersClient,
    path: &str,
    attempt: &Attempt<'_>,
    mut show: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), AskFailure> {
    let mut leader = LeaderClient::new(client);
    let mut last = None;
    let mut reported = String::new();
    loop {
        let client = leader.client();
        match client.get(path).await {
            Ok(text) => {
                attempt.report_answer();
                let content = without_times(serde_json::from_str(&text).unwrap_or_default());
                if last.as_ref() != Some(&content) {
                    show(&text)?;
                    last = Some(content);
                }
                reported.clear();
            }
            Err(error) if last.is_none() => return Err(error.into()),
            Err(error) => {
                let problem = error.to_string();
                if problem != reported {
                    print_line(&problem);
                    reported = problem;
                }
                if is_of_lost_leader(&error) {
                    leader.follow(&client).await;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the answer without what changes while nothing happens.
fn without_times(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(fields) => {
            fields.retain(|name, _| !TIME_FIELDS.contains(&name.as_str()));
            fields.values_mut().for_each(|value| *value = without_times(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_times(item.take())),
        _ => {}
    }
    answer
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn time_alone_is_no_change() {
        let answer = |cycle: u32, seconds: u32, code: &str| {
            without_times(json!({"asOf": {"cycle": cycle}, "items": [{"waitingSeconds": seconds,
                "verdict": {"code": code}, "start": {"expected": seconds, "known": true}}]}))
        };
        assert_eq!(answer(1, 5, "NoRoom"), answer(2, 7, "NoRoom"));
        assert_ne!(answer(1, 5, "NoRoom"), answer(1, 5, "Placed"));
    }
}
