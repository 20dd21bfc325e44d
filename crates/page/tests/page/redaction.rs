//! What a reader of one namespace sees. Specification: answers.md 12 (ANS-79).

use crate::support::Page;

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
