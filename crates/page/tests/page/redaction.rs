//! What a reader of one namespace sees. Specification: answers.md 12 (ANS-79).

use std::sync::Mutex;

use serde_json::{Value, json};
use vc_page::{
    AmountsJson, AskedJob, Document, FailingClassJson, ListJson, Question, ROUTES, Route,
    RouteAnswer, Visible, why_text,
};

use crate::support::{CLUSTER, Page, RACKS, Source, example_path, view, view_with};

#[tokio::test]
async fn ans_79_jobs_of_other_namespaces_have_no_names() {
    let page = Page::new();
    let path = "namespaces/ml/explanations/train";
    let of_admin = page.get("admin", path).await;
    assert!(of_admin.text.contains("prod/serve") && of_admin.text.contains("\"g1\""));
    let of_jo = page.get("jo", path).await;
    assert!(!of_jo.text.contains("prod") && !of_jo.text.contains("serve"), "{}", of_jo.text);
    let (all, seen) = (of_admin.json(), of_jo.json());
    let behind = &seen["line"]["behind"];
    assert_eq!((&behind["job"], &behind["hidden"]), (&"other-1".into(), &true.into()));
    assert_eq!(behind["values"], all["line"]["behind"]["values"], "what decides stays");
    for field in ["verdict", "gang", "short"] {
        assert_eq!(seen[field], all[field], "{field}: amounts, counts and codes stay");
    }
}

#[tokio::test]
async fn ans_79_nodes_have_names_for_whoever_may_list_them() {
    let page = Page::new();
    let path = "namespaces/ml/explanations/train";
    let seen = page.get("jo", path).await;
    for node in ["\"g1\"", "\"g2\"", "\"g4\"", "\"c1\"", "like g"] {
        assert!(!seen.text.contains(node), "{node}: {}", seen.text);
    }
    let counts = |it: serde_json::Value| -> Vec<u64> {
        let groups = it["nodes"]["groups"].as_array().unwrap().clone();
        groups.iter().map(|group| group["count"].as_u64().unwrap()).collect()
    };
    assert_eq!(counts(seen.json()), counts(page.get("admin", path).await.json()));
}

#[tokio::test]
async fn ans_79_numbers_of_a_queue_are_for_its_readers() {
    let page = Page::new();
    let path = "namespaces/ml/explanations/held";
    let all = page.get("admin", path).await.json();
    let row = &all["quota"][0];
    assert_eq!((&row["amount"], &row["queue"]), (&"4".into(), &"small".into()), "{all}");
    let seen = page.get("jo", path).await.json();
    let quota = &seen["quota"][0];
    assert_eq!((quota.get("amount"), quota.get("used")), (None, None));
    assert_eq!((&quota["short"], &quota["asked"]), (&row["short"], &row["asked"]));
    let text = seen["verdict"]["text"].as_str().unwrap();
    assert!(text.contains("queue small has no room: "), "{text}");
    assert!(!text.contains(" of 4 "), "{text}");
}

/// A ResourceQuota is of the namespace of the job, whoever may see the queue.
#[tokio::test]
async fn ans_79_numbers_of_a_resource_quota_are_for_its_namespace() {
    let cluster = "node n cpu=16\nquota ml/q hard.cpu=2\njob ml/j min=2 minres.cpu=3";
    let page = Page::of(Source(Ok(Mutex::new(view_with("resourcequota", cluster)))));
    let path = "namespaces/ml/explanations/j";
    let (all, seen) = (page.get("admin", path).await.json(), page.get("jo", path).await.json());
    let text = all["verdict"]["text"].as_str().unwrap();
    assert!(text.contains("ResourceQuota ml/q holds 0 of 2 cpu, 3 more asked"), "{text}");
    let row = &all["quota"][0];
    assert_eq!((&row["resourceQuota"], &row["short"]), (&"q".into(), &"1".into()), "{all}");
    assert_eq!((&seen["quota"], &seen["verdict"]), (&all["quota"], &all["verdict"]));
}

/// Queue `a` shares the node by weight with `b`, which wants all of it.
#[tokio::test]
async fn ans_79_a_raised_queue_tells_no_number_to_whoever_may_not_see_it() {
    for (cpus, field, number) in [(2, "weight", "2"), (8, "guarantee", "16 cpu")] {
        let cluster = format!(
            "node n cpu=16\nqueue b\nqueue a\njob ml/big queue=b
             task a cpu=4 selector.zone=none x4
             job ml/k queue=a running\n task a cpu=2 @n running x4
             job ml/j queue=a\n task a cpu={cpus}"
        );
        let page = Page::of(Source(Ok(Mutex::new(view_with("proportion", &cluster)))));
        let raised = async |user: &str| {
            let answer = page.get(user, "namespaces/ml/explanations/j").await.json();
            let remedies = answer["unblock"].as_array().unwrap();
            remedies.iter().find(|it| it["kind"] == "raiseQuota").unwrap().clone()
        };
        let whole = raised("admin").await;
        let text = whole["text"].as_str().unwrap();
        assert!(
            text.starts_with(&format!("raise spec.{field}")) && text.contains(number),
            "{text}"
        );
        let change = &whole["change"]["setQueue"];
        assert_eq!((&change["name"], change.get(field).is_some()), (&"a".into(), true), "{whole}");
        assert_eq!(raised("of-ml").await, whole, "of-ml may see the queue");
        let seen = raised("of-jobs").await;
        assert_eq!(seen["text"], "raise the limit of the queue");
        assert!(seen.get("change").is_none(), "{seen}");
    }
}

#[tokio::test]
async fn ans_79_a_cohort_that_is_hidden_is_no_queue() {
    let cluster = "node n cpu=8 gpu=8\nqueue root reclaimable=false
        queue a deserved.gpu=1\nqueue b deserved.gpu=1\njob ml/j queue=a\n task a gpu=3";
    let page = Page::of(Source(Ok(Mutex::new(view_with("cohort", cluster)))));
    let text = async |user: &str| {
        let answer = page.get(user, "namespaces/ml/explanations/j").await.json();
        answer["verdict"]["text"].as_str().unwrap().to_owned()
    };
    let whole = text("admin").await;
    assert_eq!(whole, "cohort: cohort root holds 0 of 2 nvidia.com/gpu, 3 more asked");
    let seen = text("of-jobs").await;
    assert_eq!(seen, "cohort: cohort root has no room: 1 nvidia.com/gpu short");
}

/// They name sub-groups of jobs, and taints that may have the name of a node.
#[test]
fn ans_79_texts_of_further_classes_have_no_hidden_names() {
    let (engine, mut view, timeline) = view(CLUSTER);
    let (namespace, name) = ("ml".to_owned(), "train".to_owned());
    let asked = Question::Explanation(AskedJob { namespace, name, ..AskedJob::default() });
    let Document::Explanation(mut one) = view.answer(&engine, &timeline, &asked).unwrap() else {
        panic!("no explanation")
    };
    let refused = "no node is eligible: 1 node taint owner";
    let text = format!("sub-group prod/serve/workers-0: {refused}=g1:NoSchedule");
    let (request, code) = (AmountsJson::new(), "NodesRefuse".to_owned());
    one.classes = vec![FailingClassJson { request, count: 1, code, text: text.clone() }];
    let list = ListJson::new("ExplanationList", one.as_of.clone(), vec![(*one).clone()]);
    let all = Visible { all_namespaces: true, nodes: true, ..Visible::default() };
    let own = Visible { namespaces: ["ml".to_owned()].into(), ..Visible::default() };
    for document in [Document::Explanation(one), Document::Explanations(list)] {
        let text_for = |visible: &Visible, names| {
            let mut document = document.clone();
            document.redact(names, visible);
            match document {
                Document::Explanation(one) => one.classes[0].text.clone(),
                Document::Explanations(list) => list.items[0].classes[0].text.clone(),
                other => panic!("{other:?}"),
            }
        };
        let names = view.names();
        assert_eq!(text_for(&all, &*names), text);
        let seen = text_for(&own, &*names);
        assert!(seen.starts_with("sub-group other-"), "{seen}");
        assert!(seen.ends_with(&format!(": {refused}=hidden:NoSchedule")), "{seen}");
    }
}

#[tokio::test]
async fn ans_79_whoever_lists_all_sees_codes_without_names() {
    let page = Page::new();
    let list = page.get("lister", "explanations").await;
    for name in ["train", "serve", "held", "prod", "\"ml\""] {
        assert!(!list.text.contains(name), "{name}: {}", list.text);
    }
    let list = list.json();
    let items = list["items"].as_array().unwrap();
    let mut names: Vec<&str> =
        items.iter().map(|it| it["subject"]["name"].as_str().unwrap()).collect();
    assert!(names.iter().all(|name| name.starts_with("other-")), "{names:?}");
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 3, "different jobs stay different");
    assert!(items.iter().all(|it| it["verdict"]["code"].is_string()));
    // The same job is the same in the line of another one.
    let behind = items.iter().find_map(|it| it["line"].get("behind")).unwrap();
    assert!(names.contains(&behind["job"].as_str().unwrap()), "{behind}");
}

#[tokio::test]
async fn ans_79_lines_and_nodes_hide_jobs_too() {
    let page = Page::new();
    let line = page.get("viewer", "queues/research/line").await.json();
    let hidden = |it: &serde_json::Value| it["hidden"] == true;
    assert!(line["items"].as_array().unwrap().iter().all(hidden), "{line}");
    assert_eq!(line["items"][0]["job"], "other-1");
    let node = page.get("viewer", "nodes/g1").await.json();
    assert_eq!(node["jobs"], serde_json::json!([{"job": "other-1", "hidden": true, "pods": 1}]));
}

#[tokio::test]
async fn ans_79_names_that_order_a_line_are_hidden() {
    // All were created at once, so their names decide.
    let cluster = CLUSTER.replace(" created=2400", "");
    let page = Page::of(Source(Ok(Mutex::new(view(&cluster)))));
    let path = "queues/research/line";
    let second = |line: serde_json::Value| line["items"][1].clone();
    let whole = second(page.get("admin", path).await.json());
    assert_eq!((&whole["job"], &whole["decidedBy"]), (&"prod/serve".into(), &"name".into()));
    assert_eq!(whole["values"], serde_json::json!(["prod/serve", "ml/train"]));
    let seen = second(page.get("of-ml", path).await.json());
    assert_eq!((&seen["job"], &seen["decidedBy"]), (&"other-1".into(), &"name".into()));
    assert_eq!(seen["values"], serde_json::json!(["other-1", "ml/train"]));
    let none = page.get("viewer", path).await;
    assert_eq!(second(none.json())["values"], serde_json::json!(["other-2", "other-1"]));
    assert!(!none.text.contains("train") && !none.text.contains("serve"), "{}", none.text);
}

/// Plugin drf orders jobs by their shares, which tell what they hold.
#[tokio::test]
async fn ans_79_amounts_that_order_a_line_are_hidden() {
    let serve = "min=1 created=2400\n task a cpu=8 gpu=4";
    assert!(CLUSTER.contains(serve));
    let holds = "min=2 created=2400 running\n task a cpu=8 gpu=4\n task b gpu=1 @g1 running";
    let cluster = CLUSTER.replace(serve, holds);
    let page = Page::of(Source(Ok(Mutex::new(view_with("drf", &cluster)))));
    let second = |line: Value| line["items"][1].clone();
    let line = "queues/research/line";
    let whole = second(page.get("admin", line).await.json());
    assert_eq!((&whole["job"], &whole["decidedBy"]), (&"prod/serve".into(), &"drf".into()));
    let text = whole["text"].as_str().unwrap();
    assert!(whole["values"].is_array() && text.starts_with("drf: "), "{whole}");
    // The first one sees one of the two jobs, the second one neither.
    for user in ["of-ml", "viewer"] {
        let seen = second(page.get(user, line).await.json());
        assert_eq!((seen.get("values"), &seen["text"]), (None, &"drf".into()), "{user}");
    }
    let path = "namespaces/ml/explanations/train";
    let behind = async |user: &str| page.get(user, path).await.json()["line"]["behind"].clone();
    assert_eq!(behind("admin").await["text"], text);
    // The first one may not see the other job, the second one not the queue.
    for (user, job) in [("jo", "other-1"), ("of-jobs", "prod/serve")] {
        let seen = behind(user).await;
        assert_eq!((&seen["job"], &seen["decidedBy"]), (&job.into(), &"drf".into()), "{user}");
        assert_eq!((seen.get("values"), &seen["text"]), (None, &"drf".into()), "{user}");
    }
}

#[tokio::test]
async fn ans_35_jobs_to_end_of_a_hidden_namespace_have_no_names() {
    let cluster = CLUSTER.replace("ml/on-g1", "prod/on-g1");
    let page = Page::of(Source(Ok(Mutex::new(view(&cluster)))));
    let path = "namespaces/ml/explanations/train";
    let ending = |answer: serde_json::Value| {
        let remedies = answer["unblock"].as_array().unwrap();
        remedies.iter().find(|it| it["kind"] == "endJobs").unwrap().clone()
    };
    let of_admin = ending(page.get("admin", path).await.json());
    assert_eq!(of_admin["text"], "end prod/on-g1");
    assert_eq!(of_admin["change"], serde_json::json!({"finish": {"jobs": ["prod/on-g1"]}}));
    let of_jo = ending(page.get("jo", path).await.json());
    let text = of_jo["text"].as_str().unwrap();
    assert!(text.starts_with("end other-") && of_jo.get("change").is_none(), "{of_jo}");
}

/// A what-if that removes the node of a job of namespace prod, and gives queue small more room.
const DRAIN: &str = r#"{"apiVersion": "answers.volcano.sh/v1", "kind": "WhatIf", "spec": {"changes": [{"removeNodes": {"names": ["machine-2"]}},
    {"setQueue": {"name": "small", "capability": {"nvidia.com/gpu": "20"}}}]}}"#;

/// Returns the paths of all routes that the user may ask, each with its answer, for two clusters. Their nodes have
/// names that are no part of a name of a job.
pub(crate) async fn answers_of(user: &str) -> Vec<(String, String)> {
    answers_about(CLUSTER, user, |_| vec![String::new()]).await
}

/// The same with these queries for each route, which begin with a question mark.
pub(crate) async fn answers_to(
    user: &str,
    queries: impl Fn(&Route) -> Vec<String>,
) -> Vec<(String, String)> {
    answers_about(CLUSTER, user, queries).await
}

/// The same about another cluster.
async fn answers_about(
    cluster: &str,
    user: &str,
    queries: impl Fn(&Route) -> Vec<String>,
) -> Vec<(String, String)> {
    let nodes =
        [("g1", "machine-1"), ("g2", "machine-2"), ("g4", "machine-4"), ("c1", "machine-c")];
    let named = |text: String, (name, other): (&str, &str)| {
        { ["node ", "@", "node="] }.iter().fold(text, |text, before| {
            text.replace(&format!("{before}{name}"), &format!("{before}{other}"))
        })
    };
    let mut answers = Vec::new();
    for cluster in [cluster.to_owned(), format!("{cluster}\n{RACKS}")] {
        let cluster = nodes.into_iter().fold(cluster, named);
        let page = Page::of(Source(Ok(Mutex::new(view(&cluster)))));
        for route in ROUTES.iter().filter(|route| route.answer != RouteAnswer::Bundle) {
            let path = example_path(route).replace("/g1", "/machine-1");
            for query in queries(route) {
                let path = format!("{path}{query}");
                let reply = match route.takes_body() {
                    true => page.post(user, &path, DRAIN).await,
                    false => page.get(user, &path).await,
                };
                assert!(matches!(reply.code, 200 | 403), "{path}: {}", reply.text);
                answers.extend((reply.code == 200).then_some((path, reply.text)));
            }
        }
    }
    answers
}

#[tokio::test]
async fn ans_79_no_route_names_a_job_of_a_hidden_namespace() {
    let all = answers_of("admin").await;
    let naming = |answers: &[(String, String)], name: &str| -> Vec<String> {
        answers
            .iter()
            .filter(|(_, text)| text.contains(name))
            .map(|(path, _)| path.clone())
            .collect()
    };
    let seen = answers_of("of-ml").await;
    assert_eq!(seen.len(), all.len(), "of-ml may ask everything");
    for name in ["prod", "/serve", "on-g2"] {
        assert!(2 < naming(&all, name).len(), "{name} is in the way in few answers");
        assert_eq!(naming(&seen, name), [""; 0], "{name}");
    }
}

#[tokio::test]
async fn ans_79_no_route_names_a_node_to_whoever_may_not_list_them() {
    let seen = answers_of("of-jobs").await;
    assert!(8 < seen.len(), "{}", seen.len());
    for (path, text) in seen {
        let at = text.find("machine-").unwrap_or(text.len());
        assert_eq!(&text[at..], "", "{path}");
    }
}

/// The value of a taint may be the name of a node, in an atom and in the change that tolerates it.
#[tokio::test]
async fn ans_79_nodes_have_no_names_in_atoms_and_changes() {
    let cluster = "node g1 cpu=64 gpu=8 taint=owner=g1:NoSchedule\nnode c1 cpu=64
        queue research\njob ml/j queue=research\n task a gpu=4";
    let page = Page::of(Source(Ok(Mutex::new(view(cluster)))));
    let path = "namespaces/ml/explanations/j";
    let (all, seen) = (page.get("admin", path).await, page.get("of-jobs", path).await);
    for name in ["=g1", "\"g1\""] {
        assert!(all.text.contains(name) && !seen.text.contains(name), "{name}: {}", seen.text);
    }
    let (all, seen) = (all.json(), seen.json());
    let without_name = |it: &Value| it.to_string().replace("=g1:", "=hidden:");
    assert!(all["blocking"].to_string().contains("=g1:"), "{all}");
    assert_eq!(seen["blocking"].to_string(), without_name(&all["blocking"]));
    for list in ["groups", "nearest"] {
        let atoms = |it: &Value| -> Vec<Value> {
            let rows = it["nodes"][list].as_array().unwrap();
            rows.iter().map(|row| row["atoms"].clone()).collect()
        };
        assert!(json!(atoms(&all)).to_string().contains("=g1:"), "{list}: {all}");
        assert_eq!(json!(atoms(&seen)).to_string(), without_name(&json!(atoms(&all))));
    }
    let tolerating = |it: &Value| {
        let remedies = it["unblock"].as_array().unwrap();
        remedies.iter().find(|it| it["kind"] == "tolerate").unwrap().clone()
    };
    let (whole, remedy) = (tolerating(&all), tolerating(&seen));
    assert_eq!(whole["change"]["setPods"]["tolerations"][0]["value"], "g1");
    assert_eq!(remedy["text"], "tolerate owner=hidden:NoSchedule");
    assert!(remedy.get("change").is_none(), "another value would tolerate nothing: {remedy}");
}

/// Returns the usual cluster in which the job of namespace prod on g2 ends at 02:10. Then ml/train has room.
fn ending_cluster() -> String {
    let pod = "task a gpu=5 @g2 running";
    assert!(CLUSTER.contains(pod));
    let ending = format!("{pod} started=600 annotation.reservation.volcano.sh/runtime=2h");
    CLUSTER.replace(pod, &ending)
}

#[tokio::test]
async fn ans_79_a_start_has_no_hidden_names() {
    let cluster = ending_cluster();
    let queries = |route: &Route| match route.answer {
        RouteAnswer::Explanation => {
            ["?when=true", "?depth=quick&when=true"].map(str::to_owned).to_vec()
        }
        _ => Vec::new(),
    };
    let whole = json!({
        "job": "prod/on-g2", "pods": 1, "nodes": ["machine-2"],
        "end": "2026-01-01T02:10:00Z", "source": "stated",
    });
    let cases: [(&str, &[&str]); 4] = [
        ("admin", &[]),
        ("of-ml", &["prod", "/serve", "on-g2"]),
        ("of-jobs", &["machine-"]),
        ("jo", &["prod", "/serve", "on-g2", "machine-"]),
    ];
    for (user, hidden) in cases {
        let answers = answers_about(&cluster, user, queries).await;
        assert_eq!(answers.len(), 4, "{user}: two questions about two clusters");
        for (path, text) in answers {
            for name in hidden {
                assert!(!text.contains(*name), "{user} {path}: {name}: {text}");
            }
            let answer: Value = serde_json::from_str(&text).unwrap();
            let awaited = answer["start"]["waitsFor"].as_array().unwrap();
            let mut expected = whole.clone();
            if hidden.contains(&"prod") {
                expected["job"] = "other-2".into();
                expected["hidden"] = true.into();
            }
            if hidden.contains(&"machine-") {
                expected["nodes"] = json!([]);
            }
            assert_eq!(awaited, &[expected], "{user} {path}");
        }
    }
}

/// Example F: whoever may not see the job that is waited for is told of its pods.
#[tokio::test]
async fn ans_79_a_start_by_a_hidden_job_is_told_in_words() {
    let page = Page::of(Source(Ok(Mutex::new(view(&ending_cluster())))));
    for (user, awaited) in [
        ("admin", "prod/on-g2 on g2"),
        ("of-ml", "1 pod of another namespace on g2"),
        ("of-jobs", "prod/on-g2"),
        ("jo", "1 pod of another namespace"),
    ] {
        let answer = page.get(user, "namespaces/ml/explanations/train?when=true").await;
        let text = why_text(&serde_json::from_str(&answer.text).unwrap());
        let start = text.lines().find(|line| line.starts_with("START")).unwrap();
        let ends = format!(", when {awaited} (stated) ends");
        assert!(start.contains(&ends), "{user}: {text}");
    }
}

/// Pods of the queue `small` hold 1,111 GPUs of 4,321, and 6,000 are asked for.
#[tokio::test]
async fn ans_79_no_route_tells_the_numbers_of_a_queue_to_whoever_may_not_see_it() {
    let held = " task a gpu=3 x2";
    assert!(CLUSTER.contains("small cap.gpu=4\n") && CLUSTER.ends_with(held));
    let cluster = CLUSTER.replace("cap.gpu=4\n", "cap.gpu=4321\n");
    let cluster = cluster.replace(held, " task a gpu=3000 x2");
    let holder = "node big cpu=64 gpu=9999\njob ml/holder queue=small min=1 running\n \
        task a gpu=1111 @big running";
    let cluster = format!("{cluster}\n{holder}");
    let telling = |answers: &[(String, String)], number: &str| -> Vec<String> {
        let telling = answers.iter().filter(|(_, text)| text.contains(number));
        telling.map(|(path, _)| path.clone()).collect()
    };
    let page = Page::of(Source(Ok(Mutex::new(view(&cluster)))));
    let queries = |route: &Route| match route.path {
        "/timeline" => vec![String::new(), "?queue=small".to_owned()],
        _ => vec![String::new()],
    };
    let answers = async |user: &str| {
        let mut answers = answers_about(&cluster, user, queries).await;
        // The one job that waits for the queue.
        let path = "namespaces/ml/explanations/held".to_owned();
        answers.push((path.clone(), page.get(user, &path).await.text));
        answers
    };
    let (all, seen) = (answers("admin").await, answers("of-jobs").await);
    // The limit, what is used, and what would have to be allowed.
    for number in ["4321", "1111", "7111"] {
        assert!(!telling(&all, number).is_empty(), "{number} is in no answer");
        assert_eq!(telling(&seen, number), [""; 0], "{number}");
    }
}
