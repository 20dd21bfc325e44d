//! Colours, contrast, narrow windows, and names that look like markup.

use serde::Deserialize;
use serde_json::{Value, json};
use vc_page::{ConditionJson, Document};

use crate::VIEWS;
use crate::chromium::Chromium;
use crate::served::Served;
use crate::tab::Tab;

/// Names that Kubernetes does not have. Those of objects of other makers may be like that.
const STRANGE: &str = "node n<b>\"'& cpu=64 gpu=8 zone=<i>a</i> taint=k=<b>:NoSchedule
    node n2 cpu=64 gpu=8
    queue q<script>alert(1)
    job ml/x<script>alert(1)\"'&\u{202e}abc queue=q<script>alert(1) min=2
     task a cpu=8 gpu=16 x2
    job ml/y<img queue=q<script>alert(1) min=1 running
     task a gpu=5 @n2 running";
const STRANGE_QUEUE: &str = "q<script>alert(1)";
const STRANGE_JOB: &str = "ml/x<script>alert(1)\"'&\u{202e}abc";
const STRANGE_NODE: &str = "n<b>\"'&";

/// Returns a name as long as Kubernetes lets names be.
fn long_name(first: char) -> String {
    std::iter::once(first).chain(std::iter::repeat_n('n', 252)).collect()
}

const BODY_COLORS: &str = "(() => { const style = getComputedStyle(document.body); \
    return [style.color, style.backgroundColor]; })()";
const CANVASES: &str = "[...document.querySelectorAll('canvas')].map((it) => it.toDataURL())";
/// A promise that ends after two frames: by then the page has drawn what it knows.
pub(crate) const TWO_FRAMES: &str = "new Promise((done) => requestAnimationFrame(() => \
    requestAnimationFrame(() => done(null))))";

/// What `dom.contrasts()` returns.
#[derive(Debug, Deserialize)]
struct Contrasts {
    count: usize,
    low: Vec<Value>,
}

pub(crate) async fn have_contrast_in_both_schemes(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("")).await;
    let mut n_marks = 0;
    for &(hash, title) in VIEWS {
        tab.show(hash, title).await;
        if title == "Job ml/train" {
            tab.click("Try: tolerate team=vision:NoSchedule").await;
            tab.wait("the difference", "dom.texts('.result strong').length === 1").await;
        }
        let mut pictures = Vec::new();
        for scheme in ["light", "dark"] {
            tab.use_color_scheme(scheme).await;
            let matches = format!("matchMedia('(prefers-color-scheme: {scheme})').matches");
            tab.wait(scheme, &matches).await;
            let found: Contrasts = tab.eval("dom.contrasts()").await;
            assert!(20 < found.count, "{hash}: {found:?}");
            assert!(found.low.is_empty(), "{hash} {scheme}: {:#?}", found.low);
            let marks: Contrasts = tab.eval("dom.markContrasts()").await;
            assert!(marks.low.is_empty(), "{hash} {scheme}: {:#?}", marks.low);
            n_marks += marks.count;
            let colors: [String; 2] = tab.eval(BODY_COLORS).await;
            // The page draws again when it hears of the scheme.
            tab.eval::<Value>(TWO_FRAMES).await;
            let drawn: Vec<String> = tab.eval(CANVASES).await;
            pictures.push((colors, drawn));
        }
        let [(light, drawn_light), (dark, drawn_dark)] = &pictures[..] else { unreachable!() };
        assert!(light[0] != dark[0] && light[1] != dark[1], "{hash}: {light:?} {dark:?}");
        let is_drawn = !drawn_light.is_empty();
        assert_eq!(is_drawn, title == "Nodes" || title == "Timeline", "{hash}");
        assert!(!is_drawn || drawn_light != drawn_dark, "{hash}: the picture keeps its colours");
    }
    assert!(100 < n_marks, "{n_marks} marks");
    // The measures themselves: grey on white is too weak.
    let weak = "(() => { const it = document.createElement('p'); it.style.color = '#999'; \
        it.style.background = '#fff'; it.textContent = 'weak'; document.body.append(it); \
        return dom.contrasts(); })()";
    let found: Contrasts = tab.eval(weak).await;
    assert_eq!(found.low.len(), 1, "{found:?}");
    assert_eq!(found.low[0]["text"], "weak");
    let weak = "(() => { const it = document.createElement('div'); it.style.background = '#fff'; \
        it.innerHTML = '<svg><rect width=\"9\" height=\"9\" fill=\"#aaa\"></rect></svg>'; \
        document.body.append(it); return dom.markContrasts(); })()";
    let found: Contrasts = tab.eval(weak).await;
    assert_eq!(found.low.len(), 1, "{found:?}");
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}

/// Fails if the document is wider than the window.
async fn expect_no_sideways_scrolling(tab: &Tab, what: &str) {
    let widths: [f64; 2] = tab
        .eval("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        .await;
    if widths[0] <= widths[1] {
        return;
    }
    let wide: Vec<String> = tab
        .eval(
            "[...document.querySelectorAll('body *')] \
             .filter((it) => it.getBoundingClientRect().right > innerWidth + 1 \
               && !it.closest('.scroll, .gantt')) \
             .map((it) => it.outerHTML.slice(0, 200))",
        )
        .await;
    panic!("{what}: {} of {} pixels: {wide:#?}", widths[0], widths[1]);
}

pub(crate) async fn fit_a_narrow_window(chromium: &Chromium) {
    let served = Served::open().await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("")).await;
    for width in [360, 320] {
        tab.resize(width, 640).await;
        for &(hash, title) in VIEWS {
            tab.show(hash, title).await;
            if title == "Job ml/train" && width == 360 {
                tab.click("Try: tolerate team=vision:NoSchedule").await;
                tab.wait("the difference", "dom.texts('.result strong').length === 1").await;
            }
            expect_no_sideways_scrolling(&tab, &format!("{hash} at {width}")).await;
        }
    }
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
    let (node, queue, job) = (long_name('g'), long_name('q'), long_name('j'));
    let cluster = format!(
        "node {node} cpu=64 gpu=8\nqueue {queue}\njob ml/{job} queue={queue} min=2\n \
         task a cpu=8 gpu=16 x2"
    );
    let served = Served::open_cluster(&cluster).await;
    let tab = Tab::open(&chromium.browser).await;
    tab.resize(360, 640).await;
    tab.goto(&served.page("")).await;
    for (hash, title) in [
        ("#/summary".to_owned(), "Summary".to_owned()),
        ("#/queues".to_owned(), "Queues".to_owned()),
        (format!("#/queues/{queue}"), format!("Queue {queue}")),
        ("#/jobs".to_owned(), "Jobs that wait".to_owned()),
        (format!("#/jobs/ml/{job}"), format!("Job ml/{job}")),
        ("#/nodes".to_owned(), "Nodes".to_owned()),
        (format!("#/nodes/{node}"), format!("Node {node}")),
    ] {
        tab.show(&hash, &title).await;
        expect_no_sideways_scrolling(&tab, &hash[..hash.len().min(20)]).await;
    }
    tab.close().await;
}

/// Fails if the page has elements or attributes that names could have brought.
async fn expect_no_markup(tab: &Tab, hash: &str) {
    let found: Vec<String> = tab
        .eval(
            "[...document.querySelectorAll('#page *')] \
             .filter((it) => it.matches('script, b, i, img, [onclick], [onerror]')) \
             .map((it) => it.outerHTML)",
        )
        .await;
    assert!(found.is_empty(), "{hash}: {found:?}");
}

pub(crate) async fn keep_names_text(chromium: &Chromium) {
    let served = Served::open_cluster(STRANGE).await;
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("")).await;
    tab.wait_for_view("Summary").await;
    for (hash, title, link, next) in [
        ("#/queues", "Queues", STRANGE_QUEUE, format!("Queue {STRANGE_QUEUE}")),
        ("#/jobs", "Jobs that wait", STRANGE_JOB, format!("Job {STRANGE_JOB}")),
        ("#/nodes", "Nodes", STRANGE_NODE, format!("Node {STRANGE_NODE}")),
    ] {
        tab.show(hash, title).await;
        expect_no_markup(&tab, hash).await;
        tab.click(link).await;
        tab.wait_for_view(&next).await;
        let problems = tab.texts(".problem").await;
        assert!(problems.is_empty(), "{next}: {problems:?}");
        expect_no_markup(&tab, &next).await;
        assert_eq!(tab.eval::<String>("document.title").await, format!("{next} – vc-scheduler"));
    }
    let labels = tab.table("Labels").await;
    assert!(labels.contains(&vec!["zone".to_owned(), "<i>a</i>".to_owned()]), "{labels:?}");
    tab.show("#/timeline", "Timeline").await;
    expect_no_markup(&tab, "#/timeline").await;
    assert_eq!(tab.table("Jobs that ran").await[0][0], "ml/y<img");
    // A name that turns the direction of writing does so for itself only.
    tab.show("#/jobs", "Jobs that wait").await;
    let isolated =
        format!("getComputedStyle(dom.action({})).unicodeBidi === 'isolate'", json!(STRANGE_JOB));
    assert!(tab.eval::<bool>(&isolated).await);
    for hash in ["#/jobs/ml/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "#/jobs/ml/%E0%A4%A"] {
        tab.eval::<Value>(&format!("void (location.hash = {})", json!(hash))).await;
        tab.wait("the problem", "dom.texts('.problem').join().startsWith('404')").await;
        expect_no_markup(&tab, hash).await;
    }
    tab.expect_quiet(&served.origin(), &["status of 404"]).await;
    tab.close().await;
}

/// A text that is not ours: of an admission webhook, of a user.
const STRANGE_TEXT: &str =
    "\"0/1\" nodes & <script>alert('1')</script><img src=x onerror=alert(1)> \u{5d0}\u{202e}abc";

/// Puts the strange text wherever an explanation has a text.
fn write_strange_texts(document: &mut Document) {
    let Document::Explanation(it) = document else { return };
    let strange = || STRANGE_TEXT.to_owned();
    it.verdict.text = strange();
    it.last_condition = Some(ConditionJson { reason: strange(), message: strange() });
    it.unblock.iter_mut().for_each(|remedy| remedy.text = strange());
    let sets = it.blocking.iter_mut().flat_map(|blocking| &mut blocking.sets);
    sets.flat_map(|set| &mut set.atoms).for_each(|atom| atom.r#in = strange());
    it.start.iter_mut().for_each(|start| start.text = Some(strange()));
    it.evict.iter_mut().for_each(|evict| evict.text = strange());
}

pub(crate) async fn keep_texts_text(chromium: &Chromium) {
    let served = Served::open().await;
    served.state.alter_answers(write_strange_texts);
    let tab = Tab::open(&chromium.browser).await;
    tab.goto(&served.page("#/jobs/ml/train")).await;
    tab.wait_for_view("Job ml/train").await;
    let condition = format!("Written in the PodGroup: {STRANGE_TEXT}: {STRANGE_TEXT}");
    assert_eq!(tab.texts(".verdict .quiet").await, [condition]);
    for selector in [".verdict bdi", ".remedy-text", "ol td"] {
        let shown = tab.texts(selector).await;
        assert!(shown.iter().any(|it| it.starts_with(STRANGE_TEXT)), "{selector}: {shown:?}");
    }
    let shown = tab.main_text().await;
    assert_eq!(shown.matches(STRANGE_TEXT).count(), 11, "{shown}");
    expect_no_markup(&tab, "texts").await;
    tab.expect_quiet(&served.origin(), &[]).await;
    tab.close().await;
}
