//! The view of a job shows its explanation.

use serde_json::Value;

use crate::chromium::Chromium;
use crate::expected::{amounts, clock, counted, duration, fields, joined, row, rows, text};
use crate::served::Served;
use crate::support::CLUSTER;
use crate::tab::Tab;

/// A job behind a limit whose amounts all differ.
const LIMITED: &str = "queue tiny cap.cpu=10\njob ml/wide queue=tiny min=1\n task a cpu=13
    job ml/before queue=tiny min=1 running\n task a cpu=4 @c1 running";

pub(crate) async fn show_explanations(chromium: &Chromium) {
    let served = Served::open_cluster(&format!("{CLUSTER}\n{LIMITED}")).await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("")).await;
    let mut seen = Vec::new();
    for job in ["ml/train", "prod/serve", "ml/held", "ml/wide"] {
        let (namespace, name) = job.split_once('/').unwrap();
        let path = format!("/namespaces/{namespace}/explanations/{name}?when=true");
        let it = served.get(&path).await;
        tab.show(&format!("#/jobs/{job}"), &format!("Job {job}")).await;
        check_job(&tab, &it).await;
        seen.push(it);
    }
    assert_eq!(seen[0]["verdict"]["code"], "NoRoom");
    for (pointer, what) in [
        ("/unblock/0", "a remedy"),
        ("/blocking/sets/0", "a set of obstacles"),
        ("/nodes/groups/0", "a group of nodes"),
        ("/nodes/nearest/0", "a node that comes closest"),
        ("/short/0", "an amount"),
        ("/quota/0", "a limit"),
        ("/line/behind/values", "a neighbour in the line"),
        ("/gang/pods/0", "a class of pods"),
    ] {
        assert!(seen.iter().any(|it| it.pointer(pointer).is_some()), "no job has {what}");
    }
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

/// Fails unless the view shows this explanation.
pub(crate) async fn check_job(tab: &Tab, it: &Value) {
    check_verdict(tab, it).await;
    check_remedies(tab, it).await;
    check_blocking(tab, it).await;
    check_nodes(tab, it).await;
    check_amounts(tab, it).await;
    check_place(tab, it).await;
    check_start(tab, it).await;
    check_history(tab, it).await;
}

async fn check_history(tab: &Tab, it: &Value) {
    let history = &it["history"];
    let shown: Vec<Vec<String>> =
        tab.eval("dom.facts('section[aria-labelledby=history] dl')").await;
    let times =
        [("Created (UTC)", "created"), ("Admitted", "admitted"), ("First pod bound", "firstBind")];
    let times =
        times.into_iter().filter_map(|(word, name)| Some(row([word, &clock(history.get(name)?)])));
    let counts =
        [("Pods on nodes", "onNodes"), ("Pods that ended", "ended"), ("Pods evicted", "evicted")];
    let counts = counts.into_iter().map(|(word, name)| row([word, &text(&history[name])]));
    let last = history.get("lastEviction").map(|at| row(["Last eviction", &clock(at)]));
    assert_eq!(shown, times.chain(counts).chain(last).collect::<Vec<_>>());
}

/// Fails if the text is not in the view.
async fn expect_text(tab: &Tab, wanted: &str) {
    let shown = tab.main_text().await;
    assert!(shown.contains(wanted), "{wanted:?} is not in {shown}");
}

async fn check_verdict(tab: &Tab, it: &Value) {
    let verdict = &it["verdict"];
    let shown = tab.texts(".verdict").await.concat();
    let sentence = format!("{}: {}", text(&verdict["code"]), text(&verdict["text"]));
    assert!(shown.starts_with(&sentence), "{sentence:?} does not begin {shown}");
    for code in rows(&verdict["also"]) {
        assert!(shown.contains(code.as_str().unwrap()), "{code} is not in {shown}");
    }
    let condition = &it["lastCondition"];
    if !condition.is_null() {
        let written = format!("{}: {}", text(&condition["reason"]), text(&condition["message"]));
        assert!(shown.contains(&written), "{written:?} is not in {shown}");
    }
    let subject = &it["subject"];
    let waits = format!("waits for {}", duration(&subject["waitingSeconds"]));
    expect_text(tab, &waits).await;
    expect_text(
        tab,
        &format!("queue {}, priority {}", text(&subject["queue"]), subject["priority"]),
    )
    .await;
}

async fn check_remedies(tab: &Tab, it: &Value) {
    let shown = tab.texts(".remedies > li").await;
    let remedies = rows(&it["unblock"]);
    assert_eq!(shown.len(), remedies.len(), "{shown:?}");
    for (shown, remedy) in shown.iter().zip(remedies) {
        let sentence = format!("{} {}", text(&remedy["who"]), text(&remedy["text"]));
        assert!(shown.starts_with(&sentence), "{sentence:?} does not begin {shown}");
        let nodes = joined(&remedy["nodes"], ", ");
        assert!(nodes.is_empty() || shown.contains(&format!(", then on {nodes}")), "{shown}");
        let time = remedy.get("at").map(clock);
        assert!(time.is_none_or(|it| shown.contains(&format!("({it} UTC)"))), "{shown}");
        assert_eq!(shown.ends_with(" Try"), remedy.get("change").is_some(), "{shown}");
    }
}

async fn check_blocking(tab: &Tab, it: &Value) {
    let sets = rows(&it["blocking"]["sets"]);
    for (at, set) in sets.iter().enumerate() {
        let expected = rows(&set["atoms"]).iter().map(|atom| {
            let name = text(&atom["atom"]).replacen('/', " ", 1);
            row([&name, &text(&atom["in"]), &text(&atom["nodes"]), &text(&atom["who"])])
        });
        let caption = format!("Obstacles, way {}", at + 1);
        assert_eq!(tab.table(&caption).await, expected.collect::<Vec<_>>());
    }
    assert!(!tab.has_table(&format!("Obstacles, way {}", sets.len() + 1)).await);
}

async fn check_nodes(tab: &Tab, it: &Value) {
    let nodes = &it["nodes"];
    if nodes.is_null() {
        return;
    }
    let total = counted(nodes["total"].as_u64().unwrap(), "node");
    expect_text(tab, &format!("{total}, {} of them eligible", nodes["eligible"])).await;
    let groups = rows(&nodes["groups"]);
    let shown = tab.table("Nodes by what refuses them").await;
    assert_eq!(shown.len(), groups.len());
    for (shown, group) in shown.iter().zip(groups) {
        let names = joined(&group["names"], " ");
        assert_eq!(
            (&shown[1], shown[2].trim_end_matches([' ', '…'])),
            (&text(&group["count"]), &*names)
        );
        for atom in rows(&group["atoms"]).iter().filter_map(Value::as_str) {
            let (_, what) = atom.split_once('/').unwrap();
            assert!(shown[0].contains(what), "{what} is not in {shown:?}");
        }
    }
    let nearest: Vec<Vec<String>> = rows(&nodes["nearest"])
        .iter()
        .map(|node| {
            let lacks = amounts(&node["lacks"]);
            let atoms = rows(&node["atoms"]).iter().map(|it| text(it).replacen('/', " ", 1));
            let lacks = if lacks.is_empty() { "–".to_owned() } else { lacks };
            row([&text(&node["name"]), &atoms.collect::<Vec<_>>().join(", "), &lacks])
        })
        .collect();
    if !nearest.is_empty() {
        assert_eq!(tab.table("Nodes that come closest").await, nearest);
    }
}

async fn check_amounts(tab: &Tab, it: &Value) {
    let cells = |row: &Value, names: &[&str]| names.iter().map(|it| text(&row[*it])).collect();
    let names = ["resource", "need", "free", "usable", "largest", "short", "perPod"];
    let short: Vec<Vec<String>> = rows(&it["short"]).iter().map(|it| cells(it, &names)).collect();
    let caption = "Amounts on eligible nodes";
    assert_eq!(tab.has_table(caption).await, !short.is_empty());
    if !short.is_empty() {
        assert_eq!(tab.table(caption).await, short);
    }
    let names = ["plugin", "queue", "limit", "resource", "amount", "used", "asked", "short"];
    let quota: Vec<Vec<String>> = rows(&it["quota"]).iter().map(|it| cells(it, &names)).collect();
    let caption = "Limits that it would exceed";
    assert_eq!(tab.has_table(caption).await, !quota.is_empty());
    if !quota.is_empty() {
        assert_eq!(tab.table(caption).await, quota);
    }
    let gang = &it["gang"];
    let pods = counted(gang["total"].as_u64().unwrap(), "pod");
    expect_text(tab, &format!("{pods}, {} needed", gang["needed"])).await;
    let classes = rows(&gang["pods"])
        .iter()
        .map(|it| row([&amounts(&it["request"]), &text(&it["count"]), &text(&it["placed"])]));
    assert_eq!(tab.table("Waiting pods by request").await, classes.collect::<Vec<_>>());
}

async fn check_place(tab: &Tab, it: &Value) {
    let line = &it["line"];
    if line.is_null() {
        return;
    }
    let shown = tab.texts("section[aria-labelledby=place-in-the-line]").await.concat();
    let place = format!(" of {} in queue {};", line["ofQueue"], text(&it["subject"]["queue"]));
    assert!(shown.contains(&place), "{place:?} is not in {shown}");
    let ending = match line["queueTurn"].as_u64().unwrap() {
        1 | 21 => "st",
        2 | 22 => "nd",
        3 | 23 => "rd",
        turn if turn < 31 => "th",
        turn => panic!("turn {turn}"),
    };
    let turn = format!("{}{ending} queue if a cycle began now.", line["queueTurn"]);
    assert!(shown.contains(&turn), "{turn:?} is not in {shown}");
    for (name, word) in [("before", "Behind"), ("behind", "Before")] {
        let Some(other) = line.get(name) else { continue };
        let sentence = format!("{word} {}, by {}", text(&other["job"]), text(&other["decidedBy"]));
        assert!(shown.contains(&sentence), "{sentence:?} is not in {shown}");
    }
    let ahead = &line["ahead"];
    if let Some(jobs) = ahead["jobs"].as_u64().filter(|jobs| 0 < *jobs) {
        let pods = counted(ahead["pods"].as_u64().unwrap(), "pod");
        let sentence = format!("Ahead: {} with {pods}", counted(jobs, "job"));
        assert!(shown.contains(&sentence), "{sentence:?} is not in {shown}");
        assert!(
            fields(&ahead["amounts"]).is_empty() || shown.contains(&amounts(&ahead["amounts"]))
        );
        let of_first = match ahead["tried"].as_u64().unwrap_or_default() < jobs {
            true => format!(" of the first {}", ahead["tried"]),
            false => String::new(),
        };
        let blocked = format!(", {}{of_first} cannot start now either", ahead["blocked"]);
        assert!(ahead["blocked"] == 0 || shown.contains(&blocked), "{blocked:?} is not in {shown}");
    }
}

async fn check_start(tab: &Tab, it: &Value) {
    let start = &it["start"];
    let shown = tab.texts("section[aria-labelledby=start]").await.concat();
    assert_eq!(start.is_null(), shown.is_empty(), "{shown}");
    if let Some(expected) = start.get("expected") {
        let sentence = format!("expected {} UTC.", clock(expected));
        assert!(shown.contains(&sentence), "{sentence:?} is not in {shown}");
    }
    if let Some(why) = start.get("text").and_then(Value::as_str) {
        assert!(shown.contains(why), "{why:?} is not in {shown}");
    }
    let awaited: Vec<Vec<String>> = rows(&start["waitsFor"])
        .iter()
        .map(|it| {
            let nodes = joined(&it["nodes"], " ");
            let nodes = if nodes.is_empty() { "–".to_owned() } else { nodes };
            row([
                &text(&it["job"]),
                &text(&it["pods"]),
                &nodes,
                &clock(&it["end"]),
                &text(&it["source"]),
            ])
        })
        .collect();
    if !awaited.is_empty() {
        assert_eq!(tab.table("It waits for the end of").await, awaited);
    }
    let evict = it["evict"]["text"].as_str();
    if let Some(why) = evict {
        expect_text(tab, &format!("Evicted: {why}.")).await;
    }
}
