//! Who may read the metrics.

use std::time::Duration;

use serde_json::json;
use tokio::time::advance;
use vc_kube::{AccessDecision, ReviewedRight, ReviewedUser, Reviewer};

use crate::fake::{Seen, client, json_answer, refusal};

const TOKENS: &str = "POST /apis/authentication.k8s.io/v1/tokenreviews";
const RIGHTS: &str = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews";

/// Knows the tokens `prometheus`, who may read /metrics, and `guest`.
fn server(seen: &Seen) -> Option<crate::fake::Answer> {
    let mut body = seen.body.clone();
    match &*seen.line {
        TOKENS => {
            let user = seen.body["spec"]["token"].as_str().unwrap();
            let known = ["prometheus", "guest"].contains(&user);
            let user = json!({"username": user, "groups": ["g"], "extra": {"k": ["v"]}});
            body["status"] = match known {
                true => json!({"authenticated": true, "user": user}),
                false => json!({"authenticated": false, "error": "unknown"}),
            };
        }
        RIGHTS => {
            let spec = &seen.body["spec"];
            let wanted = json!({"path": "/metrics", "verb": "get"});
            let explanations = json!({"group": "answers.volcano.sh", "verb": "get",
                "resource": "explanations", "namespace": "ml", "name": "train"});
            let may_ask = spec["user"] == "guest" && spec["resourceAttributes"] == explanations;
            let allowed = may_ask
                || spec["user"] == "prometheus"
                    && spec["groups"] == json!(["g"])
                    && spec["extra"] == json!({"k": ["v"]})
                    && spec["nonResourceAttributes"] == wanted;
            body["status"] = json!({"allowed": allowed});
        }
        _ => return refusal(404, "NotFound", "not found"),
    }
    json_answer(201, body)
}

#[tokio::test]
async fn ans_78_the_api_server_is_asked_about_a_right_to_an_object() {
    let (client, log) = client(server);
    let reviewer = Reviewer::new(client);
    assert_eq!(reviewer.user("invented").await.unwrap(), None);
    let guest = reviewer.user("guest").await.unwrap().unwrap();
    assert_eq!((guest.name.as_str(), &guest.groups[..]), ("guest", &["g".to_owned()][..]));
    assert_eq!(guest.extra["k"], ["v"]);
    let right = |namespace| ReviewedRight {
        group: "answers.volcano.sh",
        verb: "get",
        resource: "explanations",
        namespace: Some(namespace),
        name: Some("train"),
    };
    let stranger = ReviewedUser { name: "stranger".to_owned(), ..ReviewedUser::default() };
    let cases = [(&guest, "ml", true), (&guest, "prod", false), (&stranger, "ml", false)];
    for (user, namespace, wanted) in cases {
        let may = reviewer.may(user.clone(), right(namespace)).await.unwrap();
        assert_eq!(may, wanted, "{} {namespace}", user.name);
    }
    assert_eq!((log.of(TOKENS).len(), log.of(RIGHTS).len()), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn the_api_server_is_asked_about_a_token_and_a_right() {
    let (client, log) = client(server);
    let reviewer = Reviewer::new(client);
    let cases = [
        ("prometheus", "/metrics", AccessDecision::Granted),
        ("guest", "/metrics", AccessDecision::Forbidden("guest".to_owned())),
        ("prometheus", "/debug/pprof/heap", AccessDecision::Forbidden("prometheus".to_owned())),
        ("invented", "/metrics", AccessDecision::Unauthenticated),
    ];
    for _ in 0..2 {
        for (token, path, wanted) in &cases {
            assert_eq!(reviewer.review(token, path).await.unwrap(), *wanted, "{token} {path}");
        }
    }
    let asked = || (log.of(TOKENS).len(), log.of(RIGHTS).len());
    assert_eq!(asked(), (4, 3), "answers are used again");
    // A refusal holds for ten seconds, a right for a minute.
    advance(Duration::from_secs(11)).await;
    for (token, path, wanted) in &cases {
        assert_eq!(reviewer.review(token, path).await.unwrap(), *wanted);
    }
    assert_eq!(asked(), (7, 5));
    advance(Duration::from_secs(50)).await;
    reviewer.review("prometheus", "/metrics").await.unwrap();
    assert_eq!(asked(), (8, 6));
    // Many invented tokens are not remembered for ever, nor do they push out what is right for long.
    for number in 0..300 {
        reviewer.review(&format!("t{number}"), "/metrics").await.unwrap();
    }
    assert_eq!(reviewer.review("prometheus", "/metrics").await.unwrap(), AccessDecision::Granted);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_the_question_grants_nothing() {
    let (client, _) = client(|_: &Seen| refusal(403, "Forbidden", "tokenreviews is forbidden"));
    let error = Reviewer::new(client).review("prometheus", "/metrics").await.unwrap_err();
    assert_eq!(error.to_string(), "tokenreviews is forbidden");
}
