//! Random questions and bodies: whatever is sent gets an answer or a sentence, nothing panics, and the
//! state is asked as before. Specification: answers.md 1 (ANS-2), 16.
//!
//! `make fuzz-http`: FUZZ_HTTP=forever goes on with ever new seeds until something fails,
//! FUZZ_HTTP=<seed> repeats one. Without it, a few seeds.

use std::io::{Write, stderr};
use std::time::Duration;

use vc_page::ROUTES;

use crate::support::{CLUSTER, Page, RACKS, Source, view};

/// Requests of one seed.
const N_REQUESTS: usize = 250;

/// Changes that are understood, but for the last ones.
const CHANGES: &[&str] = &[
    "addNodes: {like: g1, count: 2}",
    "addNodes: {node: {apiVersion: v1, kind: Node, metadata: {name: x}, status: {allocatable: {cpu: 8, pods: 9}}}, count: 1}",
    "removeNodes: {names: [g1]}",
    "removeNodes: {selector: {matchLabels: {a: b}}}",
    "cordon: {names: [g2]}",
    "setQueue: {name: research, weight: 4, capability: {nvidia.com/gpu: \"20\"}}",
    "setJob: {job: ml/train, minMember: 1, queue: small}",
    "setPods: {job: ml/train, tolerations: [{key: team, operator: Exists}], requests: {cpu: 1}}",
    "finish: {jobs: [ml/on-g1]}",
    "delete: [{kind: Pod, namespace: ml, name: train-a-0}]",
    "advance: 30m",
    "conf: 'actions: \"enqueue, allocate, preempt\"'",
    "apply: [{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ml}, spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}]",
    "addNodes: {like: nobody, count: 99999999999999999999}",
    "advance: -1h",
];

/// Pieces that break texts, names and numbers.
const JUNK: &[&str] = &[
    "",
    "'",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\n",
    "\t",
    "- ",
    "&a ",
    "*a",
    "!!binary ",
    "|",
    "\u{202e}",
    "\0",
    "\u{7f}",
    "é",
    "😀",
    "-1",
    "0",
    "1e400",
    "NaN",
    "9223372036854775808",
    "null",
    "~",
    "true",
    "[[[[[[[[[[[[[[[[",
    "{a: {a: {a: {a: {a: {a: ",
    "---\n",
    "...\n",
    "%00",
    "../..",
    "g1",
    "ml/train",
    "Ei",
    "7Ei",
    "0.0000000001",
    "<script>",
    "1h30m",
    "2026-06-01T10:00:00Z",
    "9999-99-99T99:99:99Z",
];

/// Numbers that look random (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from(mixed >> 33).unwrap() % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Replaces, inserts and repeats pieces of the text.
    fn spoiled(&mut self, text: &str) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..self.below(4) {
            let at = self.below(letters.len() + 1);
            let end = (at + self.below(6)).min(letters.len());
            let piece: Vec<char> = match self.below(3) {
                0 => letters[at..end].repeat(2),
                _ => self.of(JUNK).chars().collect(),
            };
            letters.splice(at..end, piece);
        }
        letters.into_iter().collect()
    }

    fn body(&mut self) -> String {
        let changes: Vec<&str> = (0..self.below(4)).map(|_| self.of(CHANGES)).collect();
        let changes: String = changes.iter().map(|it| format!("  - {it}\n")).collect();
        let text = format!(
            "apiVersion: answers.volcano.sh/v1\nkind: WhatIf\nspec:\n  changes:\n{changes}"
        );
        match self.below(4) {
            0 => text,
            _ => self.spoiled(&text),
        }
    }

    /// A part of a path or of a query, escaped.
    fn word(&mut self, usual: &[&str]) -> String {
        let usual = self.of(usual);
        let word = if self.below(3) == 0 { self.spoiled(usual) } else { usual.to_owned() };
        form_urlencoded::byte_serialize(word.as_bytes()).collect::<String>().replace('+', "%20")
    }

    fn query(&mut self, known: &[&str]) -> String {
        let pairs = (0..self.below(3)).map(|_| {
            let key = match known.is_empty() || self.below(9) == 0 {
                true => self.word(&["depth", "unknown"]),
                false => self.of(known).to_owned(),
            };
            let value =
                self.word(&["1", "full", "true", "research", "Pod", "1h", "ml", "NoRoom", "99999"]);
            format!("{key}={value}")
        });
        pairs.collect::<Vec<_>>().join("&")
    }
}

/// Sends the requests of a seed.
async fn send_all(seed: u64) {
    let mut random = Random(seed);
    let page = Page::of(Source(Ok(view(&format!("{CLUSTER}\n{RACKS}")).into())));
    let before = page.get("admin", "explanations").await.text;
    for number in 0..N_REQUESTS {
        // The buckets of the user are full again after a minute.
        tokio::time::advance(Duration::from_secs(61)).await;
        let route = &ROUTES[random.below(ROUTES.len())];
        let path = route.path.trim_start_matches('/');
        let path = path.replace("{namespace}", &random.word(&["ml", "prod", "nowhere"]));
        let path = path.replace("{name}", &random.word(&["train", "research", "g1", "held"]));
        let path = format!("{path}?{}", random.query(route.query));
        let body = route.takes_body().then(|| random.body());
        let reply = match &body {
            Some(body) => page.post("admin", &path, body).await,
            None => page.get("admin", &path).await,
        };
        let said = format!("seed {seed}, request {number}: {path}\n{body:?}\n{}", reply.text);
        assert!([200, 400, 403, 404, 409, 413, 422].contains(&reply.code), "{said}");
        if reply.code != 200 {
            assert!(!reply.message().is_empty(), "{said}");
        }
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(page.get("admin", "explanations").await.text, before, "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn ans_16_random_requests_are_answered() {
    let seeds = match std::env::var("FUZZ_HTTP").as_deref() {
        Err(_) => 1..3,
        Ok("forever") => {
            let now = std::time::SystemTime::now();
            now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()..u64::MAX
        }
        Ok(seed) => {
            let seed = seed.parse().unwrap();
            seed..seed + 1
        }
    };
    for seed in seeds {
        writeln!(stderr(), "seed {seed}").unwrap();
        send_all(seed).await;
    }
}
