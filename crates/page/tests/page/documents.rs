//! What the routes answer, and what is wrong with a request. Specification: answers.md 11, 16.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{Value, json};
use vc_page::{
    ExplanationJson, HyperNodeJson, ListJson, QueueJson, ROUTES, RouteAnswer, hyper_nodes_text,
};

use crate::support::{CLUSTER, Page, RACKS, Source, example_path, view};

#[tokio::test]
async fn ans_18_a_job_is_explained() {
    let page = Page::new();
    let reply = page.get("admin", "namespaces/ml/explanations/train").await;
    let it = reply.json();
    assert_eq!(it["kind"], "Explanation");
    let as_of = &it["asOf"];
    assert_eq!((&as_of["source"], &as_of["behindMillis"]), (&"daemon".into(), &7.into()));
    assert_eq!((&as_of["cycle"], &as_of["time"]).0, &1);
    assert_eq!(it["verdict"]["code"], "NoRoom");
    assert_eq!(it["nodes"]["total"], 4);
    assert_eq!(it["line"]["behind"]["job"], "prod/serve");
    assert!(!it["blocking"]["sets"].as_array().unwrap().is_empty());
    assert!(!it["unblock"].as_array().unwrap().is_empty());
    let typed: ExplanationJson = serde_json::from_value(it.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), it, "clients read what is written");
    let quick = page.get("admin", "namespaces/ml/explanations/train?depth=quick").await.json();
    assert_eq!((quick.get("blocking"), quick.get("unblock")), (None, None));
    assert_eq!(quick["verdict"], it["verdict"]);
    let pod = page.get("admin", "namespaces/ml/explanations/train-a-0?kind=Pod").await.json();
    assert_eq!(
        (&pod["subject"]["pod"], &pod["subject"]["name"]),
        (&"train-a-0".into(), &"train".into())
    );
}

#[tokio::test]
async fn ans_11_a_quick_answer_with_the_start_has_no_sets() {
    let path = "namespaces/ml/explanations/train";
    // Each is asked first.
    let ask = async |query: &str| Page::new().get("admin", &format!("{path}?{query}")).await.json();
    let (mut whole, quick) = (ask("when=true").await, ask("depth=quick&when=true").await);
    assert!(quick["start"]["reason"].is_string(), "{quick}");
    assert!(whole.get("blocking").is_some());
    let fields = whole.as_object_mut().unwrap();
    ["blocking", "unblock", "evict"].iter().for_each(|name| drop(fields.remove(*name)));
    assert_eq!(quick, whole);
}

#[tokio::test]
async fn ans_11_lists_are_filtered_and_have_pages() {
    let page = Page::new();
    let cases = [
        ("explanations", 3, vec!["held", "train", "serve"]),
        ("namespaces/ml/explanations", 2, vec!["held", "train"]),
        ("explanations?queue=research", 2, vec!["train", "serve"]),
        ("explanations?code=Fragmented", 1, vec!["serve"]),
        ("explanations?queue=research&offset=1", 2, vec!["serve"]),
        ("explanations?limit=1", 3, vec!["held"]),
        ("explanations?offset=9", 3, vec![]),
        ("explanations?queue=nothing", 0, vec![]),
    ];
    for (path, total, names) in cases {
        let list = page.get("admin", path).await.json();
        let items = list["items"].as_array().unwrap();
        let found: Vec<&str> =
            items.iter().map(|it| it["subject"]["name"].as_str().unwrap()).collect();
        assert_eq!((&list["kind"], &list["total"]), (&"ExplanationList".into(), &total.into()));
        assert_eq!(found, names, "{path}");
    }
    let line = page.get("admin", "queues/research/line").await.json();
    let row = |it: &Value| format!("{} {} {}", it["place"], it["job"], it["pods"]);
    let rows: Vec<String> = line["items"].as_array().unwrap().iter().map(row).collect();
    assert_eq!(rows, ["1 \"ml/train\" 2", "2 \"prod/serve\" 1"]);
}

#[tokio::test]
async fn ans_11_queues_nodes_and_sums() {
    let page = Page::new();
    let queues: ListJson<QueueJson> =
        serde_json::from_value(page.get("admin", "queues").await.json()).unwrap();
    let queue = |name: &str| queues.items.iter().find(|it| it.name == name).unwrap();
    let research = queue("research");
    assert_eq!((research.jobs, research.waiting), (4, 2));
    assert_eq!(research.allocated["nvidia.com/gpu"], "10");
    assert_eq!(queue("small").capability["nvidia.com/gpu"], "4");
    let one = page.get("admin", "queues/small").await.json();
    assert_eq!((&one["kind"], &one["waiting"]), (&"Queue".into(), &1.into()));
    let nodes = page.get("admin", "nodes?limit=2").await.json();
    assert_eq!((&nodes["total"], nodes["items"].as_array().unwrap().len()), (&4.into(), 2));
    let node = page.get("admin", "nodes/g1").await.json();
    assert_eq!(node["jobs"], json!([{"job": "ml/on-g1", "pods": 1}]));
    assert_eq!(
        (&node["free"]["nvidia.com/gpu"], &node["allocatable"]["nvidia.com/gpu"]),
        (&"3".into(), &"8".into())
    );
    let percent = |of: &serde_json::Value| of["usedPercent"]["nvidia.com/gpu"].clone();
    assert_eq!(percent(&node), 63, "5 of 8");
    let tainted = page.get("admin", "nodes/g4").await.json();
    assert_eq!(tainted["taints"], json!(["team=vision:NoSchedule"]));
    let sums = page.get("admin", "summary").await.json();
    assert_eq!((&sums["nodes"], &sums["pods"]["Running"]), (&4.into(), &2.into()));
    let waiting: u64 =
        sums["waiting"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!((waiting, &sums["totalWaiting"], &sums["totalPods"]), (3, &3.into(), &7.into()));
    assert_eq!(percent(&sums), 42, "10 of 24");
}

#[tokio::test]
async fn ans_16_bad_requests_are_told_what_is_wrong() {
    let page = Page::new();
    let cases = [
        (
            "namespaces/ml/explanations/trian",
            404,
            "no job, PodGroup or pod ml/trian\nhint: did you mean train?",
        ),
        (
            "namespaces/ml/explanations/serve",
            404,
            "no job, PodGroup or pod ml/serve\nhint: pods of other schedulers are not known here",
        ),
        ("namespaces/ml/explanations/train?depth=deep", 400, "depth: quick or full wanted"),
        (
            "namespaces/ml/explanations/train?deep=1",
            400,
            "deep: unknown parameter\nhint: known are ",
        ),
        ("queues?limit=1", 400, "limit: unknown parameter\nhint: there are no parameters"),
        ("nodes?limit=many", 400, "limit: \"many\" is no number"),
        ("nodes?offset=-1", 400, "offset: \"-1\" is no number"),
        ("queues/nothing", 404, "no queue nothing"),
        ("queues/nothing/line", 404, "no queue nothing"),
        ("nodes/nothing", 404, "no node nothing"),
        ("bundles/then", 404, "no such path\nhint: "),
        ("/", 404, "no such path\nhint: "),
    ];
    for (path, code, text) in cases {
        let reply = page.get("admin", path).await;
        assert_eq!(reply.code, code, "{path}: {}", reply.text);
        assert!(reply.message().starts_with(text), "{path}: {}", reply.text);
    }
}

#[tokio::test]
async fn ans_72_what_has_not_changed_is_not_sent_again() {
    let page = Page::new();
    let first = page.get("admin", "summary").await;
    let tag = first.headers["etag"].to_str().unwrap().to_owned();
    assert_eq!(first.headers["cache-control"], "no-store");
    assert_eq!(first.headers["x-content-type-options"], "nosniff");
    let cases = [("admin", tag.as_str(), 304), ("admin", "\"other\"", 200), ("jo", &tag, 403)];
    for (user, tag, code) in cases {
        let token = format!("Bearer {user}");
        let headers = [("authorization", token.as_str()), ("if-none-match", tag)];
        let reply = page.ask("summary", &headers).await;
        assert_eq!(reply.code, code, "{user} {tag}");
        assert_eq!(reply.text.is_empty(), code == 304);
    }
    let headers = [("authorization", "Bearer admin"), ("accept-encoding", "gzip")];
    assert_eq!(page.ask("summary", &headers).await.headers["content-encoding"], "gzip");
}

/// Compares a document with a file of docs. Returns its text.
fn is_written(name: &str, document: &Value) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    let text = serde_json::to_string_pretty(document).unwrap() + "\n";
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "UPDATE_DOCS=1 cargo test -p vc-page writes docs/{name}");
    text
}

#[test]
fn ans_71_the_schema_of_the_answers_is_up_to_date() {
    let text = is_written("answers.schema.json", &vc_page::schema());
    let schema = vc_page::schema();
    for name in text.split("\"#/$defs/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(schema["$defs"].get(name).is_some(), "{name}");
    }
}

#[test]
fn ans_71_the_document_of_the_routes_is_up_to_date() {
    let text = is_written("answers.openapi.json", &vc_page::openapi());
    let schemas = vc_page::openapi()["components"]["schemas"].clone();
    // Every reference leads somewhere.
    let references = text.split("\"#/components/schemas/").skip(1);
    for name in references.map(|rest| rest.split('"').next().unwrap()) {
        assert!(schemas.get(name).is_some(), "{name}");
    }
}

#[tokio::test]
async fn ans_74_a_bundle_is_a_file_and_one_a_minute() {
    let page = Page::new();
    let reply = page.get("admin", "bundles/now?cycles=3").await;
    assert_eq!((reply.code, &*reply.text), (200, "Some(3) cycles"));
    assert_eq!(reply.headers["content-type"], "application/gzip");
    let named = "attachment; filename=\"bundle-7.tar.gz\"";
    assert_eq!(reply.headers["content-disposition"], named);
    let again = page.get("admin", "bundles/now").await;
    assert_eq!((again.code, &*again.message()), (429, "too many bundles: 1 a minute"));
    assert_eq!(page.get("admin", "summary").await.code, 200, "other questions are free");
    let wrong = Page::new().get("admin", "bundles/now?cycles=x").await;
    assert_eq!((wrong.code, &*wrong.message()), (400, "cycles: \"x\" is no number"));
}

/// It has the right and the limit of the route, and it is in the document of the routes.
#[tokio::test]
async fn ans_74_the_bundle_has_another_path() {
    let page = Page::new();
    let refused = page.get("viewer", "/debug/bundle").await;
    let expected = "user viewer may not get bundles.answers.volcano.sh\nhint: ";
    assert!(refused.code == 403 && refused.message().starts_with(expected), "{}", refused.text);
    assert_eq!(page.ask("/debug/bundle", &[]).await.code, 401);
    let reply = page.get("admin", "/debug/bundle?cycles=3").await;
    assert_eq!((reply.code, &*reply.text), (200, "Some(3) cycles"));
    assert_eq!(reply.headers["content-type"], "application/gzip");
    let again = page.get("admin", "bundles/now").await;
    assert_eq!((again.code, &*again.message()), (429, "too many bundles: 1 a minute"));
    let paths = &vc_page::openapi()["paths"];
    assert_eq!(paths["/debug/bundle"], paths["/apis/answers.volcano.sh/v1/bundles/now"]);
}

#[tokio::test]
async fn ans_11_hyper_nodes_are_a_tree_with_sums() {
    let (engine, view, timeline) = view(&format!("{CLUSTER}\n{RACKS}"));
    let page = Page::of(Source(Ok(Mutex::new((engine, view, timeline)))));
    let list = page.get("admin", "hypernodes").await.json();
    assert_eq!((&list["kind"], &list["total"]), (&"HyperNodeList".into(), &3.into()));
    let row = |it: &Value| {
        let amounts = ["used", "free", "allocatable"].map(|name| &it[name]["nvidia.com/gpu"]);
        let [used, free, all] = amounts.map(|it| it.as_str().unwrap_or("0"));
        let parent = it["parent"].as_str().unwrap_or("-");
        format!(
            "{} {} {parent} {} {} {used}+{free}/{all}",
            it["name"].as_str().unwrap(),
            it["tier"],
            it["depth"],
            it["nodes"]
        )
    };
    let rows: Vec<String> = list["items"].as_array().unwrap().iter().map(row).collect();
    let expected =
        ["zone 2 - 0 3 10+14/24", "rack-a 1 zone 1 2 10+6/16", "rack-b 1 zone 1 1 0+8/8"];
    assert_eq!(rows, expected);
    let node = page.get("admin", "nodes/g1").await.json();
    assert_eq!(node["hyperNodes"], json!(["rack-a", "zone"]));
    let other = page.get("admin", "nodes/c1").await.json();
    assert_eq!(other.get("hyperNodes"), None);
    let typed: ListJson<HyperNodeJson> = serde_json::from_value(list).unwrap();
    let text = hyper_nodes_text(&typed);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("zone ") && lines[2].starts_with("  rack-a "), "{text}");
    let none = Page::new().get("admin", "hypernodes").await.json();
    assert_eq!(none["total"], 0);
}

#[tokio::test]
async fn ans_71_each_route_has_a_tag_is_compressed_and_takes_one_method() {
    let page = Page::of(Source(Ok(Mutex::new(view(&format!("{CLUSTER}\n{RACKS}"))))));
    for route in ROUTES {
        let path = example_path(route);
        let wrong = match route.takes_body() {
            true => page.get("admin", &path).await,
            false => page.post("admin", &path, "{}").await,
        };
        assert_eq!(wrong.code, 405, "{path}");
        assert!(
            wrong.message().starts_with("the path does not take this method"),
            "{path}: {}",
            wrong.text
        );
        if route.takes_body() || route.answer == RouteAnswer::Bundle {
            continue;
        }
        let first = page.get("admin", &path).await;
        let tag = first.headers["etag"].to_str().unwrap().to_owned();
        let headers = [("authorization", "Bearer admin"), ("if-none-match", tag.as_str())];
        let again = page.ask(&path, &headers).await;
        assert_eq!((again.code, &*again.text), (304, ""), "{path}");
        let headers = [("authorization", "Bearer admin"), ("accept-encoding", "gzip")];
        let compressed = page.ask(&path, &headers).await;
        assert_eq!(compressed.headers["content-encoding"], "gzip", "{path}");
    }
}

#[tokio::test]
async fn ans_34_a_row_of_a_line_is_as_in_the_explanation_of_its_job() {
    let page = Page::new();
    let line = page.get("admin", "queues/research/line").await.json();
    let rows = line["items"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for (row, (namespace, name)) in rows.iter().zip([("ml", "train"), ("prod", "serve")]) {
        let path = format!("namespaces/{namespace}/explanations/{name}");
        let place = &page.get("admin", &path).await.json()["line"];
        assert_eq!(row["place"], place["inQueue"], "{row}");
        assert_eq!(row["decidedBy"], place["before"]["decidedBy"], "{row}");
        assert_eq!(row["values"], place["before"]["values"], "{row}");
        assert_eq!(row["ahead"], place["ahead"], "{row}");
    }
    assert!(rows[0].get("decidedBy").is_none() && rows[0].get("values").is_none(), "{line}");
    assert_eq!((&rows[1]["decidedBy"], &rows[1]["ahead"]["jobs"]), (&"created".into(), &1.into()));
    assert_eq!((&rows[1]["ahead"]["tried"], &rows[1]["ahead"]["blocked"]), (&1.into(), &1.into()));
}

#[tokio::test]
async fn ans_34_pages_of_a_line_do_not_overlap_and_leave_none_out() {
    const N_JOBS: usize = 10_000;
    let jobs: String = (0..N_JOBS).map(|number| format!("job ml/j{number:05} queue=q\n")).collect();
    let page = Page::of(Source(Ok(Mutex::new(view(&format!("node n cpu=1\nqueue q\n{jobs}"))))));
    let mut seen = Vec::new();
    let mut limit = 1;
    while seen.len() < N_JOBS {
        let path = format!("queues/q/line?offset={}&limit={limit}", seen.len());
        let part = page.get("admin", &path).await.json();
        let items = part["items"].as_array().unwrap();
        assert_eq!(items.len(), limit.min(N_JOBS - seen.len()), "{path}");
        seen.extend(items.iter().map(|it| it["job"].as_str().unwrap().to_owned()));
        limit = (limit * 3).min(900);
    }
    // All were created at once, so their names decide.
    assert!(seen.is_sorted(), "in the order in which they are served");
    seen.dedup();
    assert_eq!(seen.len(), N_JOBS);
    let behind = page.get("admin", "queues/q/line?offset=10000").await.json();
    assert_eq!(behind["items"].as_array().map(Vec::len), Some(0));
}
