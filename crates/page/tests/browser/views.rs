//! Every view but that of a job shows what the routes answer.

use serde_json::{Value, json};

use crate::chromium::Chromium;
use crate::expected::{
    amounts, clock, counted, duration, fields, percent, row, rows, share, sorted, text,
};
use crate::served::Served;
use crate::support::{CLUSTER, RACKS};
use crate::tab::{Tab, wait_until};

/// The resource that all tables begin with.
const GPU: &str = "nvidia.com/gpu";
const QUEUE_AMOUNTS: [&str; 4] = ["allocated", "deserved", "guarantee", "capability"];

pub(crate) async fn show_what_is_answered(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("")).await;
    check_summary(&tab, &served).await;
    check_queues(&tab, &served).await;
    check_queue(&tab, &served).await;
    check_jobs(&tab, &served).await;
    check_nodes(&tab, &served).await;
    check_node(&tab, &served).await;
    check_timeline(&tab, &served).await;
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

/// Jobs of a list that is asked for in three parts.
const MANY: usize = 250;
/// Rows of a list that are in the document at most.
const MOST_ROWS: usize = 80;
/// Rows of a list in the document, and in all.
const ROW_COUNTS: &str = "[document.querySelectorAll('tr.row').length, \
    Number(document.querySelector('.window table').getAttribute('aria-rowcount'))]";

pub(crate) async fn load_rows_as_they_come_in_sight(chromium: &Chromium) {
    let jobs = (0..MANY)
        .map(|number| format!("job ml/j{number:03} queue=research min=1\n task a cpu=100\n"));
    let cluster = format!("node c1 cpu=4\nqueue research\n{}", jobs.collect::<String>());
    let served = Served::open_cluster(&cluster).await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("")).await;
    for (hash, title) in [("#/jobs", "Jobs that wait"), ("#/queues/research", "Queue research")] {
        tab.show(hash, title).await;
        let first = "dom.text(document.querySelector('tr.row th')) === 'ml/j000'";
        tab.wait("the first row", first).await;
        let parts =
            |tab: &Tab| tab.requests().iter().filter(|it| it.contains("offset=200")).count();
        let before = parts(&tab);
        let window = "document.querySelector('.window')";
        tab.eval::<Value>(&format!("void ({window}.scrollTop = {window}.scrollHeight)")).await;
        let last = format!(
            "dom.text([...document.querySelectorAll('tr.row th')].at(-1)) === 'ml/j{}'",
            MANY - 1
        );
        tab.wait("the last row", &last).await;
        tab.wait("its cells", "!document.querySelector('main').textContent.includes('Loading …')")
            .await;
        assert!(before < parts(&tab), "{hash}: the last part was asked for before it was in sight");
        let rows: [usize; 2] = tab.eval(ROW_COUNTS).await;
        assert!(rows[0] <= MOST_ROWS, "{hash}: {} rows are in the document", rows[0]);
        assert_eq!(rows[1], MANY + 1, "{hash}: rows with the head");
    }
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

pub(crate) async fn check_summary(tab: &Tab, served: &Served) {
    tab.wait_for_view("Summary").await;
    let sums = served.get("/summary").await;
    let facts: Vec<Vec<String>> = tab.eval("dom.facts('dl.counts')").await;
    let expected = [
        row(["Nodes", &text(&sums["nodes"])]),
        row(["Queues", &text(&sums["queues"])]),
        row(["Jobs", &text(&sums["jobs"])]),
        row(["Jobs that wait", &text(&sums["totalWaiting"])]),
        row(["Pods", &text(&sums["totalPods"])]),
    ];
    assert_eq!(facts, expected);
    for (caption, counts) in [("Jobs by code", &sums["waiting"]), ("Pods by status", &sums["pods"])]
    {
        let counts = fields(counts).into_iter().map(|(name, count)| row([name, &text(count), ""]));
        let expected = sorted(counts.collect());
        assert!(1 < expected.len(), "{caption}: {sums}");
        assert_eq!(sorted(tab.table(caption).await), expected, "{caption}");
    }
    let used = |name: &str| sums["used"].get(name).map_or("0".to_owned(), text);
    let resources = fields(&sums["allocatable"]).into_iter().map(|(name, all)| {
        let bar = bar([&sums["used"][name], all]);
        row([name, &used(name), &text(all), &percent(&sums["usedPercent"][name]), bar])
    });
    assert_eq!(sorted(tab.table("What pods use").await), sorted(resources.collect()));
    let cycles = served.get("/cycles?last=20").await;
    let expected = rows(&cycles["items"]).iter().map(|it| {
        let time = clock(&it["time"]);
        let numbers = ["micros", "events", "binds", "evictions", "waiting"];
        [vec![text(&it["cycle"]), time], numbers.map(|name| text(&it[name])).to_vec()].concat()
    });
    assert_eq!(tab.table("Last cycles").await, expected.collect::<Vec<_>>());
    let status = tab.texts(".status").await.concat();
    let as_of = &sums["asOf"];
    let expected = format!(
        "As of {} UTC, cycle {}, {} ms behind",
        as_of["time"].as_str().unwrap().replace('T', " ").replace(":00Z", ""),
        as_of["cycle"],
        as_of["behindMillis"]
    );
    assert_eq!(status, expected);
}

/// Returns the text beside which a bar of these amounts stands: the dash if all of them are zero.
fn bar<const N: usize>(values: [&Value; N]) -> &'static str {
    let is_some = |value: &&Value| !value.is_null() && **value != "0";
    if values.iter().any(is_some) { "" } else { "–" }
}

fn queue_bar(queue: &Value, resource: &str) -> &'static str {
    bar(QUEUE_AMOUNTS.map(|name| &queue[name][resource]))
}

/// Returns the amounts of one resource of a queue.
fn queue_amounts(queue: &Value, resource: &str) -> Vec<String> {
    QUEUE_AMOUNTS.map(|name| text(&queue[name][resource])).to_vec()
}

async fn check_queues(tab: &Tab, served: &Served) {
    tab.show("#/queues", "Queues").await;
    let queues = served.get("/queues").await;
    for resource in [GPU, "cpu"] {
        let caption = format!("Queues and their {resource}");
        tab.eval::<Value>(&format!("dom.choose('Resource', {}), null", json!(resource))).await;
        let table = format!("dom.table({}) !== null", json!(caption));
        tab.wait(&format!("the table of {resource}"), &table).await;
        let expected = rows(&queues["items"]).iter().map(|queue| {
            let below = queue["parent"].as_str().map(|parent| format!(" below {parent}"));
            let name = text(&queue["name"]) + &below.unwrap_or_default();
            let counts = ["state", "waiting", "jobs"].map(|name| text(&queue[name]));
            let amounts = queue_amounts(queue, resource);
            let last = vec![share(&queue["share"])];
            [vec![name], counts.to_vec(), row([queue_bar(queue, resource)]), amounts, last].concat()
        });
        let expected = sorted(expected.collect());
        assert!(2 < expected.len(), "{queues}");
        assert_eq!(sorted(tab.table(&caption).await), expected);
    }
}

async fn check_queue(tab: &Tab, served: &Served) {
    tab.show("#/queues/research", "Queue research").await;
    let queue = served.get("/queues/research").await;
    let facts: Vec<Vec<String>> = tab.eval("dom.facts('dl.facts')").await;
    let waiting = format!("{} of {} jobs", queue["waiting"], queue["jobs"]);
    let parent = queue["parent"].as_str().map(|parent| row(["Parent", parent]));
    let mut expected = vec![row(["State", &text(&queue["state"])])];
    expected.extend(parent);
    expected.push(row(["Waiting", &waiting]));
    expected.push(row(["Weight", &text(&queue["weight"])]));
    expected.push(row(["Priority", &text(&queue["priority"])]));
    expected.push(row(["Share", &share(&queue["share"])]));
    assert_eq!(facts, expected);
    let mut resources: Vec<&str> =
        QUEUE_AMOUNTS.iter().flat_map(|name| fields(&queue[*name])).map(|it| it.0).collect();
    resources.sort_unstable();
    resources.dedup();
    assert!(resources.contains(&GPU), "{queue}");
    let expected = resources.into_iter().map(|resource| {
        [row([resource, queue_bar(&queue, resource)]), queue_amounts(&queue, resource)].concat()
    });
    let shown = tab.table("Amounts of queue research").await;
    assert_eq!(sorted(shown), sorted(expected.collect()));
    let line = served.get("/queues/research/line").await;
    let expected: Vec<Vec<String>> = rows(&line["items"]).iter().map(line_row).collect();
    assert_eq!(expected.len(), 2, "{line}");
    assert_eq!(tab.table("Jobs that wait in queue research").await, expected);
}

fn line_row(it: &Value) -> Vec<String> {
    let dash = || "–".to_owned();
    let decided = it["decidedBy"].as_str().map(|decided_by| {
        let [own, other] = [0_usize, 1].map(|at| clock(&it["values"][at]));
        format!("{decided_by}: {other} before {own}")
    });
    let ahead = &it["ahead"];
    let number = |name: &str| ahead[name].as_u64().filter(|number| 0 < *number);
    let ahead = number("jobs").zip(number("pods")).map(|(jobs, pods)| {
        let (jobs, pods) = (counted(jobs, "job"), counted(pods, "pod"));
        format!("{jobs} with {pods} ({})", amounts(&ahead["amounts"]))
    });
    let numbers = ["job", "place", "priority", "pods"].map(|name| text(&it[name]));
    let last = [duration(&it["waitingSeconds"]), text(&it["code"])];
    let order = [decided.unwrap_or_else(dash), ahead.unwrap_or_else(dash)];
    [numbers.to_vec(), last.to_vec(), order.to_vec()].concat()
}

async fn check_jobs(tab: &Tab, served: &Served) {
    for (hash, path, least) in [
        ("#/jobs", "/explanations", 3),
        ("#/jobs?code=NoRoom", "/explanations?code=NoRoom", 1),
        ("#/jobs?namespace=prod", "/namespaces/prod/explanations", 1),
        ("#/jobs?queue=small", "/explanations?queue=small", 1),
    ] {
        tab.show(hash, "Jobs that wait").await;
        let expected = wait_for_jobs(tab, served, path).await;
        assert!(least <= expected.len(), "{path}: {expected:?}");
    }
    check_runs(tab, served).await;
}

/// Waits until the rows of this list are shown, each with its start. Returns them.
pub(crate) async fn wait_for_jobs(tab: &Tab, served: &Served, path: &str) -> Vec<Vec<String>> {
    let list = served.get(path).await;
    let mut expected = Vec::new();
    for it in rows(&list["items"]) {
        let (namespace, name) = (text(&it["subject"]["namespace"]), text(&it["subject"]["name"]));
        let why = format!("/namespaces/{namespace}/explanations/{name}?when=true");
        expected.push(job_row(it, &served.get(&why).await["start"]));
    }
    // The title is the same with every filter, so it does not say that the rows are there.
    let wanted = json!(expected).to_string();
    let same = format!("JSON.stringify(dom.table('Jobs that wait')) === {}", json!(wanted));
    tab.wait(&format!("{path} with {wanted}"), &same).await;
    expected
}

/// Returns what the table of jobs says about a start.
fn start_cell(start: &Value) -> String {
    match (start.get("expected"), start.get("earliest"), start.get("text")) {
        (Some(at), ..) => clock(at),
        (None, Some(at), Some(_)) => format!("not before {}", clock(at)),
        (None, None, Some(_)) => "not known".to_owned(),
        (None, ..) => "–".to_owned(),
    }
}

/// The switch of the jobs shows those that run.
async fn check_runs(tab: &Tab, served: &Served) {
    tab.show("#/jobs", "Jobs that wait").await;
    tab.eval::<Value>("dom.choose('Show', 'running'), null").await;
    tab.wait_for_view("Jobs that run").await;
    let list = served.get("/runs").await;
    let expected = rows(&list["items"]).iter().map(|it| {
        let names = ["job", "queue", "pods"].map(|name| text(&it[name]));
        let times = ["start", "end"].map(|name| clock(&it[name]));
        [names.to_vec(), times.to_vec(), row([&text(&it["source"])])].concat()
    });
    let expected: Vec<Vec<String>> = expected.collect();
    assert_eq!(expected.len(), 2, "{list}");
    assert_eq!(tab.table("Jobs that run").await, expected);
    assert!(!tab.eval::<bool>("Boolean(dom.field('Code'))").await, "what runs has no code");
}

fn job_row(it: &Value, start: &Value) -> Vec<String> {
    let subject = &it["subject"];
    let name = subject.get("job").unwrap_or(&subject["name"]);
    let line = &it["line"];
    let place = match line.is_null() {
        true => "–".to_owned(),
        false => format!("{} of {}", line["inQueue"], line["ofQueue"]),
    };
    row([
        &format!("{}/{}", text(&subject["namespace"]), text(name)),
        &text(&it["verdict"]["code"]),
        &text(&subject["queue"]),
        &place,
        &start_cell(start),
        &duration(&subject["waitingSeconds"]),
        &text(&it["verdict"]["text"]),
    ])
}

/// Returns what a table of nodes says about taints and cordons.
fn node_state(node: &Value, none: &str) -> String {
    let cordoned = (node["cordoned"] == true).then(|| "cordoned".to_owned());
    let states: Vec<String> =
        cordoned.into_iter().chain(rows(&node["taints"]).iter().map(text)).collect();
    if states.is_empty() { none.to_owned() } else { states.join(" ") }
}

async fn check_nodes(tab: &Tab, served: &Served) {
    tab.show("#/nodes", "Nodes").await;
    let nodes = served.get("/nodes").await;
    let expected = rows(&nodes["items"]).iter().map(|node| {
        let amounts = ["used", "free", "allocatable"].map(|name| text(&node[name][GPU]));
        let part = percent(&node["usedPercent"][GPU]);
        let last = [part, text(&node["pods"]), node_state(node, "–")];
        [vec![text(&node["name"])], amounts.to_vec(), last.to_vec()].concat()
    });
    let expected: Vec<Vec<String>> = expected.collect();
    assert!(expected.iter().any(|cells| cells[6] != "–"), "{nodes}");
    assert_eq!(tab.table(&format!("Nodes and their {GPU}")).await, expected);
    let n_nodes = expected.len();
    let label: String = tab.eval("document.getElementById('node-map').ariaLabel").await;
    assert!(label.starts_with(&format!("Map of {n_nodes} nodes")), "{label}");
    let painted = "(() => { const it = document.getElementById('node-map'); \
        const pixels = it.getContext('2d').getImageData(0, 0, it.width, it.height).data; \
        return new Set(new Uint32Array(pixels.buffer)).size; })()";
    assert!(2 < tab.eval::<usize>(painted).await, "the map is empty");
}

/// Expected ends of jobs that run, and starts of those that wait for them. Only rows in sight have been asked for.
pub(crate) async fn show_starts_and_ends(chromium: &Chromium) {
    let runtime = "annotation.reservation.volcano.sh/runtime";
    let waiting = (0..MANY).map(|number| {
        format!("job ml/j{number:03} queue=research min=1\n task a cpu=4 {runtime}=10m\n")
    });
    let cluster = format!(
        "node c1 cpu=4\nqueue research\njob ml/run queue=research min=1 running\n \
         task a cpu=4 @c1 running started=5000 {runtime}=1h\n{}",
        waiting.collect::<String>()
    );
    let served = Served::open_cluster(&cluster).await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/jobs?show=running")).await;
    tab.wait_for_view("Jobs that run").await;
    let runs = tab.table("Jobs that run").await;
    let expected = ["ml/run", "research", "1", "01:23:20", "02:23:20", "stated"];
    assert_eq!(runs, [row(expected)]);
    tab.show("#/jobs", "Jobs that wait").await;
    let start = "dom.table('Jobs that wait')[0][4] === '02:23:20'";
    tab.wait("the start of the first job", start).await;
    let why = "/namespaces/{namespace}/explanations/{name}";
    wait_until("further starts", || 3 < served.state.n_answered(why, 200)).await;
    let cells = "dom.table('Jobs that wait').map((cells) => cells[4])";
    let starts: Vec<String> = tab.eval(cells).await;
    assert!(starts.len() < MANY / 2, "{} rows are in the document", starts.len());
    let n_asked = served.state.n_answered(why, 200);
    assert!(n_asked <= starts.len(), "{n_asked} starts of {} rows were asked for", starts.len());
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

/// Keeps the next answer about nodes with a label back until `window.release` is called.
const HOLD_LABELS: &str = "(() => { const own = window.fetch; \
    window.fetch = async (address, options) => { \
        if (String(address).includes('labels=')) await new Promise((end) => { \
            window.release = () => { window.fetch = own; end(); }; }); \
        return own(address, options); }; })()";

/// Nodes in bands by a label, and what a node lacks for a job.
pub(crate) async fn group_nodes_and_show_what_they_lack(chromium: &Chromium) {
    let cluster =
        CLUSTER.replace("node g1 ", "node g1 zone=z2 ").replace("node g2 ", "node g2 zone=z1 ");
    let served = Served::open_cluster(&cluster).await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/nodes")).await;
    tab.wait_for_view("Nodes").await;
    tab.wait("the labels", "Boolean(dom.field('Group by label')?.options.length === 2)").await;
    tab.eval::<Value>(&format!("void {HOLD_LABELS}")).await;
    tab.eval::<Value>("dom.choose('Group by label', 'zone'), null").await;
    tab.wait("the question about zones", "Boolean(window.release)").await;
    let shown = tab.main_text().await;
    assert!(shown.contains("4 nodes."), "not all nodes are shown meanwhile: {shown}");
    let label: String = tab.eval("document.getElementById('node-map').ariaLabel").await;
    assert!(label.starts_with("Map of 4 nodes ") && !label.contains("grouped"), "{label}");
    tab.eval::<Value>("void window.release()").await;
    let rows_of =
        format!("dom.table('Nodes and their {GPU}').map((cells) => [cells[0], cells[1]])");
    let wanted = r#"[["c1","no value"],["g4","no value"],["g2","z1"],["g1","z2"]]"#;
    let same = format!("JSON.stringify({rows_of}) === {}", json!(wanted));
    tab.wait("the nodes by zone", &same).await;
    let label: String = tab.eval("document.getElementById('node-map').ariaLabel").await;
    assert!(label.contains(", grouped by zone."), "{label}");
    // From the job the node says what it lacks for this job alone.
    tab.show("#/jobs/ml/train", "Job ml/train").await;
    let it = served.get("/namespaces/ml/explanations/train?when=true").await;
    let nearest = &it["nodes"]["nearest"][0];
    let name = text(&nearest["name"]);
    let link = "[...document.querySelectorAll('a')].find((it) => it.hash.includes('?for=') && dom.text(it) ===";
    tab.eval::<Value>(&format!("void {link} {}).click()", json!(name))).await;
    let title = format!("Node {name}");
    tab.wait_for_view(&title).await;
    let hash: String = tab.eval("location.hash").await;
    assert_eq!(hash, format!("#/nodes/{name}?for=ml%2Ftrain"));
    let lacks = tab.table("What it lacks for jobs that wait").await;
    assert_eq!(lacks.len(), 1, "{lacks:?}");
    let lacked = amounts(&nearest["lacks"]);
    let lacked = if lacked.is_empty() { "–" } else { &lacked };
    assert_eq!((&*lacks[0][0], &*lacks[0][2]), ("ml/train", lacked));
    // Without a job all that come close to it are there.
    tab.show(&format!("#/nodes/{name}"), &title).await;
    tab.wait("the jobs", "dom.table('What it lacks for jobs that wait')?.length > 0").await;
    let list = served.get("/explanations").await;
    let is_near =
        |it: &&Value| rows(&it["nodes"]["nearest"]).iter().any(|row| row["name"] == *name);
    let n_near = rows(&list["items"]).iter().filter(is_near).count();
    let same = format!("dom.table('What it lacks for jobs that wait').length === {n_near}");
    tab.wait("a row for each job", &same).await;
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

/// HyperNodes stand below the nodes, and a node says in which it is.
pub(crate) async fn show_hyper_nodes(chromium: &Chromium) {
    let served = Served::open().await;
    served.state.replace(&format!("{CLUSTER}\n{RACKS}"));
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/nodes")).await;
    tab.wait_for_view("Nodes").await;
    tab.wait("the tree", "document.body.innerText.includes('rack-b')").await;
    let list = served.get("/hypernodes").await;
    let expected = rows(&list["items"]).iter().map(|it| {
        let counts = ["tier", "nodes", "pods"].map(|name| text(&it[name]));
        let bar = bar([&it["used"][GPU], &it["allocatable"][GPU]]);
        let amounts = ["used", "free", "allocatable"].map(|name| text(&it[name][GPU]));
        [vec![text(&it["name"])], counts.to_vec(), vec![bar.to_owned()], amounts.to_vec()].concat()
    });
    let expected: Vec<Vec<String>> = expected.collect();
    let shown: Vec<Vec<String>> = tab.table(&format!("HyperNodes and their {GPU}")).await;
    assert_eq!(shown, expected);
    tab.show("#/nodes/g1", "Node g1").await;
    let facts: Vec<Vec<String>> = tab.eval("dom.facts('dl.facts')").await;
    assert!(facts.contains(&row(["HyperNodes", "rack-a ⊂ zone"])), "{facts:?}");
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

async fn check_node(tab: &Tab, served: &Served) {
    for name in ["g1", "g4"] {
        tab.show(&format!("#/nodes/{name}"), &format!("Node {name}")).await;
        let node = served.get(&format!("/nodes/{name}")).await;
        let facts: Vec<Vec<String>> = tab.eval("dom.facts('dl.facts')").await;
        let state = node_state(&node, "schedulable");
        assert_eq!(facts, [row(["State", &state]), row(["Pods", &text(&node["pods"])])]);
        let expected = fields(&node["allocatable"]).into_iter().map(|(resource, _)| {
            let amounts = ["used", "free", "allocatable"].map(|name| text(&node[name][resource]));
            let bar = bar([&node["used"][resource], &node["allocatable"][resource]]);
            [row([resource, bar]), amounts.to_vec()].concat()
        });
        assert_eq!(sorted(tab.table("Amounts").await), sorted(expected.collect()), "{name}");
        let jobs: Vec<Vec<String>> = rows(&node["jobs"])
            .iter()
            .map(|it| row([&text(&it["job"]), &text(&it["pods"])]))
            .collect();
        assert_eq!(jobs.is_empty(), name == "g4", "{node}");
        if !jobs.is_empty() {
            assert_eq!(tab.table("Jobs on it").await, jobs, "{name}");
        }
    }
}

async fn check_timeline(tab: &Tab, served: &Served) {
    tab.show("#/timeline", "Timeline").await;
    let timeline = served.get("/timeline").await;
    let jobs: Vec<Vec<String>> = rows(&timeline["jobs"])
        .iter()
        .map(|it| {
            let end = it.get("end").map_or("runs".to_owned(), clock);
            row([
                &text(&it["job"]),
                &text(&it["queue"]),
                &text(&it["pods"]),
                &text(&it["bound"]),
                &clock(&it["created"]),
                &clock(&it["admitted"]),
                &clock(&it["start"]),
                &end,
            ])
        })
        .collect();
    assert_eq!(jobs.len(), 2, "{timeline}");
    assert_eq!(tab.table("Jobs that ran").await, jobs);
    let sentence = format!(
        "From {} to {} UTC: {}, {}.",
        clock(&timeline["from"]),
        clock(&timeline["to"]),
        counted(2, "job"),
        counted(rows(&timeline["evictions"]).len() as u64, "eviction"),
    );
    let shown = tab.main_text().await;
    assert!(shown.contains(&sentence), "{sentence:?} is not in {shown}");
    let bars = tab.texts(".gantt > svg [data-address] title").await;
    assert_eq!(bars.len(), 2);
    for job in jobs {
        let title = format!("{}, {}", job[0], counted(job[2].parse().unwrap(), "pod"));
        assert!(bars.iter().any(|bar| bar.starts_with(&title)), "{title:?} is not in {bars:?}");
    }
    let samples = rows(&timeline["samples"]);
    let counts = samples
        .iter()
        .map(|it| row([&clock(&it["time"]), &text(&it["waiting"]), &text(&it["running"])]));
    assert_eq!(tab.table("waiting and running by time").await, counts.collect::<Vec<_>>());
    let allocated =
        samples.iter().map(|it| row([&clock(&it["time"]), &text(&it["allocated"][GPU])]));
    assert_eq!(tab.table(&format!("{GPU} by time")).await, allocated.collect::<Vec<_>>());
    assert_eq!(tab.eval::<usize>("document.querySelectorAll('.curve canvas').length").await, 2);
}
