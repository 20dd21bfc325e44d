//! The pictures of the page in the documents. `UPDATE_DOCS=1` draws them. Without it the test checks
//! that `docs/page` has exactly these files, and that `docs/answers.md` shows each of them.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use vc_engine::Effect;
use vc_model::ClusterEvent;
use vc_model::fixture::events_of;

use crate::chromium::Chromium;
use crate::history::{CONF, view_after};
use crate::looks::TWO_FRAMES;
use crate::served::Served;
use crate::tab::Tab;

/// Names of the files in `docs/page`, without `.png`.
const PICTURES: [&str; 6] = ["queues", "job", "remedy", "nodes", "hypernodes", "timeline"];
/// Width and height of the window, in pixels.
const WINDOW: [u32; 2] = [1_040, 700];
const HIGHEST_PICTURE: u32 = 900;
const MOST_BYTES: usize = 120_000;
/// Space around the part of the page that is drawn, in pixels.
const MARGIN: u32 = 16;

/// A tree of queues over eight nodes. Queue nlp holds more than it deserves.
const QUEUES: &str = "node g1 cpu=64 gpu=8\nnode g2 cpu=64 gpu=8\nnode g3 cpu=64 gpu=8
    node g4 cpu=64 gpu=8\nnode g5 cpu=64 gpu=8\nnode g6 cpu=64 gpu=8\nnode g7 cpu=64 gpu=8
    node g8 cpu=64 gpu=8
    queue root
    queue research parent=root deserved.gpu=40 cap.gpu=56
    queue nlp parent=research deserved.gpu=24 guarantee.gpu=8 cap.gpu=40
    queue vision parent=research deserved.gpu=16 cap.gpu=24
    queue product parent=root deserved.gpu=24 guarantee.gpu=16
    queue serving parent=product deserved.gpu=16 guarantee.gpu=16 cap.gpu=32
    queue ranking parent=product deserved.gpu=8 cap.gpu=16
    job nlp/pretrain queue=nlp min=3 running
     task a gpu=8 @g1 running\n task b gpu=8 @g2 running\n task c gpu=8 @g3 running
    job nlp/tune queue=nlp min=1 running\n task a gpu=6 @g4 running
    job vision/track queue=vision min=1 running\n task a gpu=2 @g4 running
    job vision/detect queue=vision min=1 running\n task a gpu=8 @g5 running
    job prod/serve queue=serving min=1 running\n task a gpu=4 @g6 running x2
    job prod/chat queue=serving min=1 running\n task a gpu=4 @g7 running
    job prod/rank queue=ranking min=1 running\n task a gpu=3 @g7 running
    job nlp/eval queue=nlp min=2\n task a gpu=8 x2
    job vision/label queue=vision min=1\n task a gpu=16
    job prod/rerank queue=ranking min=2\n task a gpu=8 x2";
const TREE_CONF: &str = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  \
    - name: priority\n  - name: predicates\n  - name: capacity\n    enableHierarchy: true\n  \
    - name: nodeorder\n";

/// Three nodes have room, none of them has enough for one pod. A fourth one has a taint.
const FRAGMENTED: &str = "node g1 cpu=64 gpu=8\nnode g2 cpu=64 gpu=8\nnode g3 cpu=64 gpu=8
    node g4 cpu=64 gpu=8 taint=team=vision:NoSchedule\nnode c1 cpu=64\nnode c2 cpu=64
    queue research
    job ml/train queue=research min=2\n task a cpu=8 gpu=4 x2
    job ml/sweep queue=research min=1 created=2400\n task a cpu=8 gpu=4
    job ml/eval queue=research min=1 running\n task a gpu=5 @g1 running
    job prod/serve queue=research min=1 running\n task a gpu=5 @g2 running
    job prod/rank queue=research min=1 running\n task a gpu=5 @g3 running";

/// Racks with the GPUs that are used on each of their nodes. The map shows a rack in a row.
const RACKS: [(&str, [u32; 8]); 6] = [
    ("a1", [8, 8, 8, 8, 7, 7, 6, 6]),
    ("a2", [8, 6, 6, 5, 4, 4, 2, 0]),
    ("a3", [7, 7, 5, 3, 1, 0, 8, 8]),
    ("b1", [8, 8, 4, 4, 4, 2, 2, 1]),
    ("b2", [3, 5, 0, 0, 6, 8, 8, 8]),
    (RACK_WITHOUT_GPUS, [0; 8]),
];
const RACK_WITHOUT_GPUS: &str = "b3";
const ZONES: &str = "hypernode zone-a tier=2 member=rack-a1 member=rack-a2 member=rack-a3
    hypernode zone-b tier=2 member=rack-b1 member=rack-b2 member=rack-b3
    hypernode hall tier=3 member=zone-a member=zone-b";

/// Returns the racks as a cluster: two nodes have a taint, two are cordoned.
fn racks() -> String {
    let mut text = "queue research\n".to_owned();
    for (rack, used) in RACKS {
        let (mut members, mut tasks) = (String::new(), String::new());
        for (at, gpus) in used.into_iter().enumerate() {
            let node = format!("{rack}-{}", at + 1);
            let capacity = if rack == RACK_WITHOUT_GPUS { "" } else { " gpu=8" };
            let mark = match node.as_str() {
                "a3-7" | "a3-8" => " taint=team=vision:NoSchedule",
                "b2-3" | "b2-4" => " unschedulable",
                _ => "",
            };
            text.push_str(&format!("node {node} cpu=64{capacity}{mark}\n"));
            members.push_str(&format!(" node={node}"));
            let amount = if 0 < gpus { format!("gpu={gpus}") } else { "cpu=4".to_owned() };
            tasks.push_str(&format!(" task {at} {amount} @{node} running\n"));
        }
        text.push_str(&format!("hypernode rack-{rack} tier=1{members}\n"));
        text.push_str(&format!("job ml/{rack} queue=research min=1 running\n{tasks}"));
    }
    text + ZONES
}

/// Minutes of the timeline.
const HOUR: usize = 60;
/// The end of a job that still runs after [`HOUR`].
const RUNS: usize = 99;
/// Jobs that others have placed: name, queue, request and node of each pod, minutes of start and
/// end.
const SPANS: &[(&str, &str, &str, [usize; 2])] = &[
    ("prod/serve", "product", "gpu=4 @g1", [1, RUNS]),
    ("prod/rank-1", "product", "gpu=4 @g1", [3, 19]),
    ("prod/rank-2", "product", "gpu=4 @g1", [21, 37]),
    ("prod/rank-3", "product", "gpu=4 @g1", [39, RUNS]),
    ("ml/base", "research", "gpu=4 @g2 x2", [1, 24]),
    ("ml/eval-1", "research", "gpu=4 @g2", [26, 44]),
    ("ml/eval-2", "research", "gpu=4 @g2", [28, 51]),
    ("ml/sweep-1", "research", "gpu=4 @g3", [5, 16]),
    ("ml/sweep-2", "research", "gpu=4 @g3", [8, 30]),
    ("ml/sweep-3", "research", "gpu=4 @g3", [17, 33]),
    ("ml/train", "research", "gpu=4 @g3 x2", [34, RUNS]),
    ("cv/label", "vision", "gpu=4 @g4", [2, 27]),
    ("cv/detect", "vision", "gpu=4 @g4", [10, 48]),
    ("cv/track", "vision", "gpu=4 @g4", [29, RUNS]),
];
/// What else comes, with its minute. When `urgent` and `fix` come, all nodes are full, and only
/// `nightly` is less important.
const ARRIVALS: &[(usize, &str)] = &[
    (1, "node g1 cpu=64 gpu=8\nnode g2 cpu=64 gpu=8\nnode g3 cpu=64 gpu=8"),
    (1, "node g4 cpu=64 gpu=8\nnode g5 cpu=64 gpu=8"),
    (1, "queue product\nqueue research\nqueue vision"),
    (4, "job ml/nightly queue=research min=1 priority=1 running\n task a gpu=2 @g5 x4 running"),
    (40, "job ml/urgent queue=research min=1 priority=9\n task a gpu=4"),
    (43, "job ml/fix queue=research min=1 priority=9\n task a gpu=2"),
];
const N_EVICTIONS: usize = 3;

/// Returns what the cycle of a minute hears. Pods that the cycle before has evicted are gone.
fn events_at(minute: usize, decided: &[Effect]) -> Vec<ClusterEvent> {
    let gone = decided.iter().filter_map(|effect| match effect {
        Effect::Evict { pod, uid, .. } => {
            Some(ClusterEvent::PodDeleted { key: pod.clone(), uid: uid.clone() })
        }
        _ => None,
    });
    let arrivals = ARRIVALS.iter().filter(|(at, _)| *at == minute).map(|(_, text)| *text);
    let mut text = arrivals.collect::<Vec<_>>().join("\n");
    for (name, queue, task, [start, end]) in SPANS {
        let phase = if minute == *start {
            "running"
        } else if minute == *end {
            "succeeded"
        } else {
            continue;
        };
        text.push_str(&format!("\njob {name} queue={queue} min=1 priority=9 running"));
        text.push_str(&format!("\n task a {task} {phase}"));
    }
    gone.chain(events_of(&text)).collect()
}

pub(crate) async fn draw_pictures_of_documents(chromium: &Chromium) {
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(folder()).unwrap();
        draw_queues(chromium).await;
        draw_job(chromium).await;
        draw_nodes(chromium).await;
        draw_timeline(chromium).await;
    }
    let entries = fs::read_dir(folder()).expect("docs/page: UPDATE_DOCS=1 draws the pictures");
    let files = entries.map(|it| it.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<String> = files.collect();
    let expected = BTreeSet::from(PICTURES.map(|name| format!("{name}.png")));
    assert_eq!(files, expected, "docs/page: UPDATE_DOCS=1 draws the pictures");
    let page = fs::read_to_string(folder().join("../answers.md")).unwrap();
    for file in files {
        assert!(page.contains(&format!("](page/{file})")), "docs/answers.md lacks page/{file}");
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/page")
}

/// Opens a view in a window of the size of the pictures.
async fn open_view(chromium: &Chromium, served: &Served, scheme: &str, view: [&str; 2]) -> Tab {
    let [hash, title] = view;
    let tab = Tab::open(&chromium.browser).await;
    tab.resize(WINDOW[0], WINDOW[1]).await;
    tab.use_color_scheme(scheme).await;
    tab.goto(&served.page(hash)).await;
    tab.wait_for_view(title).await;
    tab
}

/// Draws the page from the top of an element to the bottom of another one into a file. Both are
/// selectors.
async fn save(tab: &Tab, name: &str, [first, last]: [&str; 2]) {
    tab.eval::<Value>("document.activeElement.blur(), scrollTo(0, 0), null").await;
    tab.eval::<Value>(TWO_FRAMES).await;
    let cut: [u32; 2] = tab
        .eval(&format!(
            "(() => {{ const box = (it) => document.querySelector(it).getBoundingClientRect(); \
             return [Math.max(0, Math.floor(box({}).top) - {MARGIN}), \
               Math.ceil(box({}).bottom) + {MARGIN}]; }})()",
            json!(first),
            json!(last)
        ))
        .await;
    let height = cut[1] - cut[0];
    assert!((100..HIGHEST_PICTURE).contains(&height), "{name} is {height} pixels high");
    let picture = STANDARD.decode(tab.picture(WINDOW[0], cut).await).unwrap();
    assert!(picture.len() < MOST_BYTES, "{name}: {} bytes of {MOST_BYTES}", picture.len());
    assert!(PICTURES.contains(&name), "{name} is no picture of the documents");
    fs::write(folder().join(format!("{name}.png")), picture).unwrap();
}

async fn draw_queues(chromium: &Chromium) {
    let view = view_after(TREE_CONF, 1, |_, _| events_of(QUEUES));
    let served = Served::open_view(view).await;
    let tab = open_view(chromium, &served, "light", ["#/queues", "Queues"]).await;
    save(&tab, "queues", ["header", ".window"]).await;
    tab.close().await;
}

/// Draws a job that waits, and what one of its remedies would do.
async fn draw_job(chromium: &Chromium) {
    let served = Served::open_cluster(FRAGMENTED).await;
    let view = ["#/jobs/ml/train", "Job ml/train"];
    let tab = open_view(chromium, &served, "light", view).await;
    save(&tab, "job", ["header", "section[aria-labelledby=what-blocks-it]"]).await;
    tab.click("Try: tolerate team=vision:NoSchedule").await;
    tab.wait("the difference", "dom.texts('.result strong').length === 1").await;
    let remedies = "section[aria-labelledby=what-would-unblock-it]";
    save(&tab, "remedy", [remedies, remedies]).await;
    tab.close().await;
}

/// Draws the map of nodes, and the HyperNodes below it.
async fn draw_nodes(chromium: &Chromium) {
    let served = Served::open_cluster(&racks()).await;
    let tab = open_view(chromium, &served, "light", ["#/nodes", "Nodes"]).await;
    let tree = "section[aria-labelledby=hypernodes]";
    tab.wait("the tree", &format!("document.querySelector('{tree}') !== null")).await;
    save(&tab, "nodes", ["header", "figure"]).await;
    save(&tab, "hypernodes", [tree, tree]).await;
    tab.close().await;
}

/// Draws the jobs of an hour with evictions, in dark colours.
async fn draw_timeline(chromium: &Chromium) {
    let served = Served::open_view(view_after(CONF, HOUR, events_at)).await;
    let tab = open_view(chromium, &served, "dark", ["#/timeline", "Timeline"]).await;
    let marks = tab.texts(".gantt > svg path.eviction + title").await;
    assert_eq!(marks.len(), N_EVICTIONS, "{marks:?}");
    save(&tab, "timeline", ["header", ".gantt"]).await;
    tab.close().await;
}
