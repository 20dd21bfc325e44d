//! A tab of the browser: what is done in it, and what it reports by itself.

use std::mem::take;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::log::EventEntryAdded;
use chromiumoxide::cdp::browser_protocol::network::EventRequestWillBeSent;
use chromiumoxide::cdp::js_protocol::runtime::{EventConsoleApiCalled, EventExceptionThrown};
use chromiumoxide::types::MethodId;
use chromiumoxide::{Browser, Command, Method, Page};
use futures::stream::{BoxStream, StreamExt, select_all};
use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// Time after which what has not come never comes.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Time between two looks whether something has come.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Begins a text on the console that says that all before it was seen.
const FENCE: &str = "fence ";

/// Fences so far, of all tabs.
static N_FENCES: AtomicUsize = AtomicUsize::new(0);

/// A command of the DevTools protocol as JSON: newer browsers have values that types do not know.
#[derive(Debug)]
struct JsonCommand {
    method: &'static str,
    params: Value,
}

impl Serialize for JsonCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.params.serialize(serializer)
    }
}

impl Method for JsonCommand {
    fn identifier(&self) -> MethodId {
        self.method.into()
    }
}

impl Command for JsonCommand {
    type Response = Value;
}

/// Something that a tab reports by itself.
enum TabEvent {
    /// An error or a warning: of a script, of the console, of the network, of the policy.
    Problem(String),
    /// The address of a request.
    Request(String),
    Fence(String),
}

/// What a tab has reported so far.
#[derive(Debug, Default)]
struct TabLog {
    problems: Vec<String>,
    requests: Vec<String>,
    fence: String,
}

/// A tab with its own log.
pub(crate) struct Tab {
    page: Page,
    log: Arc<Mutex<TabLog>>,
    events: JoinHandle<()>,
}

impl Tab {
    /// Opens a tab, 1280 pixels wide, that has the focus and the light colour scheme.
    pub(crate) async fn open(browser: &Browser) -> Self {
        let page = browser.new_page("about:blank").await.unwrap();
        let log: Arc<Mutex<TabLog>> = Arc::default();
        let mut events = events(&page).await;
        let writer = log.clone();
        let events = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let mut log = writer.lock().unwrap();
                match event {
                    TabEvent::Problem(text) => log.problems.push(text),
                    TabEvent::Request(url) => log.requests.push(url),
                    TabEvent::Fence(text) => log.fence = text,
                }
            }
        });
        let tab = Self { page, log, events };
        for domain in ["Runtime.enable", "Log.enable", "Network.enable", "Accessibility.enable"] {
            tab.send(domain, json!({})).await;
        }
        tab.send("Emulation.setFocusEmulationEnabled", json!({ "enabled": true })).await;
        let helpers = json!({ "source": include_str!("dom.js") });
        tab.send("Page.addScriptToEvaluateOnNewDocument", helpers).await;
        tab.resize(1280, 900).await;
        tab.use_color_scheme("light").await;
        tab
    }

    pub(crate) async fn close(self) {
        self.page.close().await.unwrap();
        self.events.abort();
    }

    /// Sends a command of the DevTools protocol.
    pub(crate) async fn send(&self, method: &'static str, params: Value) -> Value {
        let answer = self.page.execute(JsonCommand { method, params: params.clone() }).await;
        answer.unwrap_or_else(|error| panic!("{method} {params}: {error}")).result
    }

    /// Returns the value of an expression, also if it is a promise.
    async fn evaluate(&self, expression: &str) -> Result<Value, String> {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.page.execute(JsonCommand { method: "Runtime.evaluate", params }).await;
        let answer = answer.map_err(|error| error.to_string())?.result;
        match answer.get("exceptionDetails") {
            Some(details) => Err(details["exception"]["description"].to_string()),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    pub(crate) async fn eval<T: DeserializeOwned>(&self, expression: &str) -> T {
        let value = self.evaluate(expression).await;
        let value = value.unwrap_or_else(|error| panic!("{expression}: {error}"));
        let shown = value.to_string();
        serde_json::from_value(value)
            .unwrap_or_else(|error| panic!("{expression} is {shown}: {error}"))
    }

    /// Waits until the expression is true. `what` says in words what is missing if it never is.
    pub(crate) async fn wait(&self, what: &str, expression: &str) {
        let end = Instant::now() + LONGEST_WAIT;
        loop {
            let found = self.evaluate(expression).await;
            if found == Ok(Value::Bool(true)) {
                return;
            }
            if end < Instant::now() {
                let shown = self.evaluate("document.body.innerText.slice(0, 2000)").await;
                panic!("{what} does not come: {expression} is {found:?}; the page shows {shown:?}");
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }

    pub(crate) async fn goto(&self, address: &str) {
        self.page.goto(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
    }

    pub(crate) async fn reload(&self) {
        self.page.reload().await.unwrap();
    }

    /// Goes to a view of the page that is open, and waits until it has its answers.
    pub(crate) async fn show(&self, hash: &str, title: &str) {
        self.eval::<Value>(&format!("void (location.hash = {})", json!(hash))).await;
        self.wait_for_view(title).await;
    }

    pub(crate) async fn wait_for_view(&self, title: &str) {
        self.wait(&format!("view {title}"), &format!("dom.shows({})", json!(title))).await;
    }

    /// Returns the table with this caption.
    pub(crate) async fn table(&self, caption: &str) -> Vec<Vec<String>> {
        let rows: Option<_> = self.eval(&format!("dom.table({})", json!(caption))).await;
        rows.unwrap_or_else(|| panic!("no table {caption:?}"))
    }

    pub(crate) async fn has_table(&self, caption: &str) -> bool {
        self.eval(&format!("dom.table({}) !== null", json!(caption))).await
    }

    /// Returns the texts of all elements that the selector finds.
    pub(crate) async fn texts(&self, selector: &str) -> Vec<String> {
        self.eval(&format!("dom.texts({})", json!(selector))).await
    }

    /// Returns the text of the view.
    pub(crate) async fn main_text(&self) -> String {
        self.eval("dom.text(document.querySelector('main'))").await
    }

    /// Clicks with the mouse on the button or link with this name.
    pub(crate) async fn click(&self, name: &str) {
        let element = format!("dom.action({})", json!(name));
        self.wait(&format!("button {name}"), &format!("Boolean({element})")).await;
        let place: [f64; 2] = self
            .eval(&format!(
                "(() => {{ const it = {element}; it.scrollIntoView({{ block: 'center' }}); \
                 const box = it.getBoundingClientRect(); \
                 return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
            ))
            .await;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1,
            });
            self.send("Input.dispatchMouseEvent", event).await;
        }
    }

    /// Writes over what is in the field with this label.
    pub(crate) async fn fill(&self, label: &str, text: &str) {
        let field = format!("dom.field({})", json!(label));
        self.eval::<Value>(&format!("{field}.focus(), {field}.select(), null")).await;
        self.send("Input.insertText", json!({ "text": text })).await;
    }

    /// Presses a key: `Tab` or `Enter`.
    pub(crate) async fn press(&self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            _ => panic!("no key {key}"),
        };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [down, "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code,
            });
            if kind == "keyDown" {
                event["text"] = text.into();
            }
            self.send("Input.dispatchKeyEvent", event).await;
        }
    }

    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.send("Emulation.setDeviceMetricsOverride", size).await;
    }

    pub(crate) async fn use_color_scheme(&self, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.send("Emulation.setEmulatedMedia", json!({ "features": [feature] })).await;
    }

    /// Returns a picture of the page between these heights as PNG in base64.
    pub(crate) async fn picture(&self, width: u32, [top, bottom]: [u32; 2]) -> String {
        let height = bottom - top;
        let clip = json!({ "x": 0, "y": top, "width": width, "height": height, "scale": 1 });
        let params = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let picture = self.send("Page.captureScreenshot", params).await;
        picture["data"].as_str().unwrap().to_owned()
    }

    /// Returns the addresses that the tab has asked so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.log.lock().unwrap().requests.clone()
    }

    /// Returns errors and warnings up to now, and forgets them.
    pub(crate) async fn take_problems(&self) -> Vec<String> {
        let number = N_FENCES.fetch_add(1, Ordering::Relaxed);
        let fence = format!("{FENCE}{number}");
        self.eval::<Value>(&format!("console.debug({})", json!(fence))).await;
        wait_until("the fence", || self.log.lock().unwrap().fence == fence).await;
        take(&mut self.log.lock().unwrap().problems)
    }

    /// Waits until an error or a warning with this text is reported.
    pub(crate) async fn wait_for_problem(&self, text: &str) {
        let is_there = || self.log.lock().unwrap().problems.iter().any(|it| it.contains(text));
        wait_until(&format!("a report of {text}"), is_there).await;
    }

    /// Fails if an error or a warning was reported that has none of the allowed texts, or if an
    /// address was asked that does not begin with `origin`.
    pub(crate) async fn expect_quiet(&self, origin: &str, allowed: &[&str]) {
        let mut problems = self.take_problems().await;
        problems.retain(|problem| !allowed.iter().any(|it| problem.contains(it)));
        assert!(problems.is_empty(), "the browser reports {problems:#?}");
        let mut requests = self.requests();
        assert!(requests.iter().any(|it| it.starts_with(origin)), "requests are not seen");
        requests.retain(|it| !it.starts_with(origin) && !it.starts_with("data:"));
        assert!(requests.is_empty(), "requests leave {origin}: {requests:#?}");
    }
}

/// Waits until the condition is true. `what` says in words what is missing if it never is.
pub(crate) async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + LONGEST_WAIT;
    while !condition() {
        assert!(Instant::now() < end, "{what} does not come");
        sleep(BETWEEN_LOOKS).await;
    }
}

/// Returns the events of a tab that a test looks at.
async fn events(page: &Page) -> impl StreamExt<Item = TabEvent> + Send + Unpin + use<> {
    let console = page.event_listener::<EventConsoleApiCalled>().await.unwrap();
    let console = console.filter_map(async |event| console_event(&event));
    let exceptions = page.event_listener::<EventExceptionThrown>().await.unwrap();
    let exceptions = exceptions.map(|event| {
        let details = &event.exception_details;
        let thrown = details.exception.as_ref().and_then(|it| it.description.clone());
        TabEvent::Problem(format!("exception: {} {}", details.text, thrown.unwrap_or_default()))
    });
    let entries = page.event_listener::<EventEntryAdded>().await.unwrap();
    let entries = entries.filter_map(async |event| {
        let entry = &event.entry;
        let (source, level) = (entry.source.as_ref(), entry.level.as_ref());
        let url = entry.url.clone().unwrap_or_default();
        let text = format!("{source} {level}: {} {url}", entry.text);
        ["error", "warning"].contains(&level).then_some(TabEvent::Problem(text))
    });
    let requests = page.event_listener::<EventRequestWillBeSent>().await.unwrap();
    let requests = requests.map(|event| TabEvent::Request(event.request.url.clone()));
    let all: [BoxStream<'static, TabEvent>; 4] =
        [requests.boxed(), entries.boxed(), exceptions.boxed(), console.boxed()];
    select_all(all)
}

fn console_event(event: &EventConsoleApiCalled) -> Option<TabEvent> {
    let texts = event.args.iter().map(|it| match &it.value {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => it.description.clone().unwrap_or_default(),
    });
    let text = texts.collect::<Vec<_>>().join(" ");
    match event.r#type.as_ref() {
        "debug" if text.starts_with(FENCE) => Some(TabEvent::Fence(text)),
        "error" | "warning" | "assert" => Some(TabEvent::Problem(format!("console: {text}"))),
        _ => None,
    }
}
