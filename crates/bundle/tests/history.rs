//! Segments, their limit, what a bundle takes of them, and its texts. Specification: answers.md 15,
//! cases 95 to 97.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use ciborium::Value;
use vc_bundle::{
    Bundle, BundleError, BundleWriter, EncodedCheckpoint, History, HistoryCopy, RecordedInput,
    Replay, TextPlace, effect_line, encode_checkpoint,
};
use vc_engine::{
    BatchKind, Checkpoint, Config, CycleTime, EffectDigest, Engine, EngineBatch, EngineCommand,
    EngineOptions, Evaluator,
};
use vc_model::{ClusterEvent, Division, NodeRecord, ObjectKey, OtherScheduler, Settings, fixture};

const MINUTE: i64 = 60_000_000;

fn engine() -> Engine {
    Engine::new(EngineOptions::default(), &Config::default()).0
}

fn checkpoint(engine: &Engine) -> EncodedCheckpoint {
    encode_checkpoint(&engine.copy().into_checkpoint(0).unwrap()).unwrap()
}

/// A cycle at this minute in which a node of this number comes.
fn cycle(engine: &mut Engine, minute: i64) -> RecordedInput {
    let name = format!("node-{minute}").into();
    let node = NodeRecord { name, ..NodeRecord::default() };
    let events = vec![ClusterEvent::NodeApplied(Box::new(node))];
    let now = CycleTime { unix_micros: minute * MINUTE };
    let (effects, _report) = engine.cycle(events.clone(), now);
    let mut digest = EffectDigest::default();
    digest.add(&effects);
    let batch = EngineBatch { kind: BatchKind::Cycle, events, now, digest: digest.value() };
    RecordedInput::Batch { batch, effect_lines: Vec::new() }
}

/// A history of so many minutes with a cycle in each, as the process keeps it.
fn kept(engine: &mut Engine, most_bytes: usize, n_minutes: i64) -> History {
    let mut history = History::new(most_bytes);
    for minute in 0..n_minutes {
        if history.is_due(minute * MINUTE) {
            let segment = history.begin(engine.n_cycles(), minute * MINUTE);
            history.put_checkpoint(segment, checkpoint(engine));
        }
        let input = cycle(engine, minute);
        history.record(&input, engine.n_cycles());
    }
    history
}

fn bundle(history: &HistoryCopy, n_cycles: Option<u64>) -> Result<Bundle, BundleError> {
    let mut bytes = Vec::new();
    BundleWriter::new(history, n_cycles)?.write(&mut bytes)?;
    Bundle::read(&*bytes)
}

fn range(bundle: &Bundle) -> (u64, u64) {
    (bundle.manifest().first_cycle, bundle.manifest().last_cycle)
}

#[test]
fn ans_96_a_segment_begins_every_ten_minutes_with_news() {
    let history = kept(&mut engine(), usize::MAX, 35).copy();
    let whole = bundle(&history, None).unwrap();
    assert_eq!(range(&whole), (0, 35));
    let states = whole.manifest().files.keys().filter(|name| name.starts_with("state-"));
    let states: Vec<&String> = states.collect();
    assert_eq!(states, ["state-0.cbor", "state-10.cbor", "state-20.cbor", "state-30.cbor"]);
    // As few segments as the cycles need.
    for (n_cycles, first) in [(1, 30), (5, 30), (6, 20), (25, 10), (99, 0)] {
        let part = bundle(&history, Some(n_cycles)).unwrap();
        assert_eq!(range(&part), (first, 35), "{n_cycles} cycles");
    }
    let mut quiet = History::new(usize::MAX);
    let segment = quiet.begin(0, 0);
    assert!(!quiet.is_due(60 * MINUTE), "its state is being stored");
    quiet.put_checkpoint(segment, checkpoint(&engine()));
    assert!(!quiet.is_due(60 * MINUTE), "nothing has happened");
}

#[test]
fn ans_96_the_oldest_segment_goes() {
    let mut engine = engine();
    let history = kept(&mut engine, 60_000, 200).copy();
    let kept = bundle(&history, None).unwrap();
    let (first, last) = range(&kept);
    assert!(0 < first && last == 200, "{first}..{last}");
    let mut replay = Replay::new(&kept, None).unwrap();
    while let Some(step) = replay.step() {
        assert!(step.is_same);
    }
    assert_eq!(replay.engine().n_cycles(), 200);
}

#[test]
fn ans_96_no_history() {
    let mut none = History::new(0);
    assert!(!none.is_on() && !none.is_due(0));
    let mut engine = engine();
    let input = cycle(&mut engine, 0);
    none.record(&input, 1);
    assert!(matches!(bundle(&none.copy(), None), Err(BundleError::Empty)));
    // The state alone can still be had.
    let now = HistoryCopy::of_now(engine.n_cycles(), checkpoint(&engine));
    let bundle = bundle(&now, None).unwrap();
    assert_eq!(range(&bundle), (1, 1));
    let mut replay = Replay::new(&bundle, None).unwrap();
    assert!(replay.step().is_none());
    assert_eq!(replay.engine().cluster().nodes.len(), 1);
}

/// A pod comes after the last cycle. What the next cycle decides follows from the state alone.
#[test]
fn ans_101_the_cycle_after_a_state_is_decided() {
    let text = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n";
    let config = vc_conf::parse("test.conf", text, &vc_engine::KNOWN).unwrap().config;
    let mut engine = Engine::new(EngineOptions::default(), &config).0;
    let now = CycleTime { unix_micros: fixture::START_MICROS + MINUTE };
    drop(engine.cycle(fixture::events_of("node n cpu=4 pods=9\nqueue default"), now));
    engine.apply(fixture::events_of("job j min=1 inqueue\n task a cpu=1"));
    let stored = bundle(&HistoryCopy::of_now(1, checkpoint(&engine)), None).unwrap();
    assert_eq!(range(&stored), (1, 1));
    let mut replay = Replay::new(&stored, None).unwrap();
    assert!(replay.step().is_none(), "nothing was recorded");
    let next = replay.decide_unrecorded();
    assert_eq!((next.cycle, next.now, next.is_same), (2, now, true));
    assert!(next.recorded.is_empty() && next.report.is_some());
    let lines: Vec<String> = next.effects.iter().map(effect_line).collect();
    assert!(lines.contains(&"bind default/j-a to n".to_owned()), "{lines:?}");
    // The engine that was stored decides the same.
    assert_eq!(next.effects, engine.cycle(Vec::new(), now).0);
}

/// Before the first cycle the clock stands at the creation of the newest pod.
#[test]
fn ans_101_a_state_before_the_first_cycle_has_the_time_of_its_pods() {
    let mut engine = engine();
    let mut events = fixture::events_of("node n cpu=4\nqueue default\njob ml/j\n task a cpu=1");
    let newest = fixture::START_MICROS + 7 * MINUTE;
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event {
            pod.created_micros = newest;
        }
    }
    engine.apply(events);
    let stored = bundle(&HistoryCopy::of_now(0, checkpoint(&engine)), None).unwrap();
    let mut replay = Replay::new(&stored, None).unwrap();
    let next = replay.decide_unrecorded();
    assert_eq!((next.cycle, next.now.unix_micros), (1, newest));
}

#[test]
fn ans_96_a_state_beyond_the_limit_switches_the_history_off() {
    let mut history = History::new(100);
    let segment = history.begin(0, 0);
    assert!(!history.put_checkpoint(segment, checkpoint(&engine())));
    assert!(!history.is_on() && !history.is_due(i64::MAX));
}

#[test]
fn ans_100_what_was_recorded_while_the_state_was_stored_is_there() {
    let mut engine = engine();
    let mut history = History::new(usize::MAX);
    let segment = history.begin(0, 0);
    let stored = checkpoint(&engine);
    let input = cycle(&mut engine, 0);
    history.record(&input, 1);
    assert!(history.copy().is_empty(), "there is nothing to begin with");
    history.put_checkpoint(segment, stored);
    let bundle = bundle(&history.copy(), None).unwrap();
    let mut replay = Replay::new(&bundle, None).unwrap();
    assert_eq!(replay.next_cycle(), 1);
    assert!(replay.step().unwrap().is_same && replay.step().is_none());
}

#[test]
fn ans_100_a_state_that_cannot_be_stored_now_is_stored_later() {
    let mut engine = engine();
    let mut history = History::new(usize::MAX);
    let first = history.begin(0, 0);
    let input = cycle(&mut engine, 0);
    history.record(&input, 1);
    assert!(!history.is_due(0));
    history.give_up(first);
    assert!(history.is_due(0));
    let second = history.begin(1, 0);
    history.put_checkpoint(second, checkpoint(&engine));
    let input = cycle(&mut engine, 1);
    history.record(&input, 2);
    assert_eq!(range(&bundle(&history.copy(), None).unwrap()), (1, 2));
}

#[test]
fn ans_100_inputs_without_a_state_are_bounded() {
    let mut engine = engine();
    let mut history = History::new(1_000);
    history.begin(0, 0);
    for minute in 0..3_000 {
        let input = cycle(&mut engine, minute);
        history.record(&input, engine.n_cycles());
    }
    assert!(history.is_due(0), "all was forgotten, and a state is wanted again");
}

#[test]
fn ans_102_a_renamed_bundle_decides_the_same_from_each_state() {
    let history = kept(&mut engine(), usize::MAX, 35).copy();
    let named = bundle(&history, None).unwrap();
    let rename = |name: &str| name.replace("node-", "a-");
    let change = |place: TextPlace, text: &str| (!place.is_conf).then(|| rename(text));
    let mut bytes = Vec::new();
    named.renamed(&change, &rename).unwrap().write(&mut bytes).unwrap();
    let renamed = Bundle::read(&*bytes).unwrap();
    assert_eq!(range(&renamed), range(&named));
    let files = |bundle: &Bundle| bundle.manifest().files.keys().cloned().collect::<Vec<String>>();
    assert_eq!(files(&renamed), files(&named));
    for at in [0, 10, 29, 30] {
        let mut replay = Replay::new(&renamed, Some(at)).unwrap();
        while let Some(step) = replay.step() {
            assert!(step.is_same, "from {at}: cycle {}", step.cycle);
        }
        let cluster = replay.engine().cluster();
        assert_eq!(cluster.nodes.len(), 35);
        assert!(cluster.node("a-34").is_some() && cluster.node("node-34").is_none());
        assert_eq!(cluster.check(), Ok(()));
    }
    for name in files(&renamed) {
        let contents = renamed.file(&name).unwrap();
        assert!(!contents.windows(6).any(|it| it == b"node-3"), "{name}");
    }
}

/// The same bundle with `a` in place of `team`.
fn without_team(named: &Bundle) -> Result<Bundle, BundleError> {
    let rename = |name: &str| name.replace("team", "a");
    let change = |place: TextPlace, text: &str| (!place.is_conf).then(|| rename(text));
    named.renamed(&change, &rename)
}

/// A bundle of the state after some cycles with these objects.
fn state_of(engine: &mut Engine, objects: &str) -> Bundle {
    let mut events = fixture::events_of(objects);
    for minute in 0..3 {
        let now = CycleTime { unix_micros: fixture::START_MICROS + minute * MINUTE };
        drop(engine.cycle(std::mem::take(&mut events), now));
    }
    bundle(&HistoryCopy::of_now(engine.n_cycles(), checkpoint(engine)), None).unwrap()
}

/// The states of the plugins of an engine, by name.
fn plugin_states(engine: Engine) -> BTreeMap<String, Vec<u8>> {
    let state = Value::serialized(&engine.into_checkpoint(0).unwrap()).unwrap();
    let mut fields = state.as_map().unwrap().iter();
    let (_, states) = fields.find(|(key, _)| key.as_text() == Some("plugins")).unwrap();
    states.deserialized().unwrap()
}

/// A state that a plugin cannot read is dropped, so the next state has none of it.
#[test]
fn ans_102_plugins_read_their_renamed_states() {
    for plugin in ["cohort", "fairshare", "pdb", "rescheduling", "tdm"] {
        let text = format!(
            "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  \
             - name: {plugin}\n"
        );
        let config = vc_conf::parse("test.conf", &text, &vc_engine::KNOWN).unwrap().config;
        let mut engine = Engine::new(EngineOptions::default(), &config).0;
        let objects = "node n1 cpu=8 pods=99\nqueue team\n\
            budget team app=x allowed=1 healthy=2\n\
            job team/job queue=team min=2\n  task a cpu=1 x2 label.app=x";
        let named = state_of(&mut engine, objects);
        let before = plugin_states(engine);
        let renamed = without_team(&named).unwrap();
        let after = plugin_states(Replay::new(&renamed, None).unwrap().into_engine());
        assert!(before.contains_key(plugin), "{plugin}");
        assert!(after.contains_key(plugin), "{plugin} cannot read its state");
        let has_name = |state: &[u8]| state.windows(4).any(|it| it == b"team");
        assert!(plugin != "fairshare" || has_name(&before[plugin]), "{plugin} knows the queue");
        assert!(!has_name(&after[plugin]), "{plugin}");
    }
}

/// The id of a sub-job is a hash of its values if they are long.
#[test]
fn ans_102_sub_jobs_with_long_values_are_found_by_their_new_ids() {
    let value = |end: u32| format!("team-{}{end}", "x".repeat(40));
    let labels = format!("label.k={} label.l={} label.m={}", value(1), value(2), value(3));
    let objects = format!("job j\n  policy p keys=k,l,m\n  task a cpu=1 {labels}");
    let named = state_of(&mut engine(), &objects);
    let renamed = without_team(&named).unwrap();
    let replay = Replay::new(&renamed, None).unwrap();
    assert_eq!(replay.engine().cluster().check(), Ok(()));
}

/// An engine with one pod of another scheduler.
fn engine_with_other_scheduler() -> Engine {
    let mut engine = engine();
    let mut events = fixture::events_of("node n cpu=4\npod ml/far cpu=1 @n running");
    for event in &mut events {
        if let ClusterEvent::PodApplied(pod) = event {
            pod.scheduler_name = "team-scheduler".into();
        }
    }
    drop(engine.cycle(events, CycleTime { unix_micros: fixture::START_MICROS }));
    engine
}

/// The scheduler of the pod `ml/far`.
fn other_scheduler(engine: &Engine) -> Option<OtherScheduler> {
    let cluster = engine.cluster();
    assert_eq!(cluster.check(), Ok(()));
    let pod = cluster.task_named(&ObjectKey::new("ml", "far")).unwrap();
    cluster.other_scheduler(pod).cloned()
}

#[test]
fn ans_03_the_schedulers_of_pods_are_part_of_the_state() {
    let engine = engine_with_other_scheduler();
    let named = |name: &str| Some(OtherScheduler::ByName(name.into()));
    assert_eq!(other_scheduler(&engine.copy_for_questions()), named("team-scheduler"));
    let now = HistoryCopy::of_now(engine.n_cycles(), checkpoint(&engine));
    let stored = bundle(&now, None).unwrap();
    let replay = Replay::new(&stored, None).unwrap();
    assert_eq!(other_scheduler(replay.engine()), named("team-scheduler"));
    let renamed = without_team(&stored).unwrap();
    let replay = Replay::new(&renamed, None).unwrap();
    assert_eq!(other_scheduler(replay.engine()), named("a-scheduler"));
}

#[test]
fn ans_103_the_manifest_has_the_options_that_decide() {
    let settings = Settings {
        default_queue: "team".into(),
        node_selector: vec![("pool".into(), "team".into())],
        bare_pods: true,
        queue_gate_admission: true,
        ..Settings::default()
    };
    let evaluator = Evaluator::Plain;
    let options = EngineOptions { seed: 7, evaluator, ..EngineOptions::from(settings) };
    let engine = Engine::new(options, &Config::default()).0;
    let named = bundle(&HistoryCopy::of_now(0, checkpoint(&engine)), None).unwrap();
    let renamed = without_team(&named).unwrap();
    for (bundle, name) in [(&named, "team"), (&renamed, "a")] {
        let options = bundle.manifest().engine_options.clone().unwrap();
        assert_eq!((options.seed, &*options.evaluator), (7, "plain"));
        assert_eq!((&*options.default_queue, &*options.bare_pods), (name, "schedule"));
        assert_eq!(options.node_selector, [format!("pool:{name}")]);
        assert_eq!(options.scheduler_names, ["volcano"]);
        let gate = |name: &str| options.feature_gates[name];
        assert!(gate("SchedulingGatesQueueAdmission") && !gate("StorageCapacityScoring"));
    }
}

/// Removes these fields of all objects.
fn without_fields(value: Value, fields: &[&str]) -> Value {
    let is_removed = |key: &Value| key.as_text().is_some_and(|text| fields.contains(&text));
    match value {
        Value::Array(values) => {
            Value::Array(values.into_iter().map(|it| without_fields(it, fields)).collect())
        }
        Value::Map(entries) => {
            let kept = entries.into_iter().filter(|(key, _)| !is_removed(key));
            Value::Map(kept.map(|(key, it)| (key, without_fields(it, fields))).collect())
        }
        value => value,
    }
}

fn cbor(value: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).unwrap();
    bytes
}

#[test]
fn ans_03_a_state_of_an_earlier_version_says_nothing_about_schedulers() {
    let mut engine = engine_with_other_scheduler();
    let now = cbor(&engine.copy().into_checkpoint(0).unwrap());
    let value: Value = ciborium::from_reader(&*now).unwrap();
    let earlier = cbor(&without_fields(value, &["scheduler", "other_schedulers"]));
    assert!(earlier.len() < now.len());
    let earlier: Checkpoint = ciborium::from_reader(&*earlier).unwrap();
    let mut restored = Engine::restore(earlier, Evaluator::Plain);
    assert_eq!(other_scheduler(&restored), None);
    // Both decide the same.
    let time = CycleTime { unix_micros: fixture::START_MICROS + MINUTE };
    let events = || fixture::events_of("queue default\njob ml/j\n task a cpu=1");
    assert_eq!(restored.cycle(events(), time).0, engine.cycle(events(), time).0);
}

#[test]
fn ans_102_a_divided_state_is_refused() {
    let settings = Settings { division: Some(Division::new("team-0", 2)), ..Settings::default() };
    let mut engine = Engine::new(EngineOptions::from(settings), &Config::default()).0;
    let refused = without_team(&state_of(&mut engine, "node n1")).unwrap_err().to_string();
    let expected = "state-3.cbor: cluster.settings.division: this scheduler shares its work";
    assert!(refused.starts_with(expected) && refused.contains("\nhint: "), "{refused}");
}

#[test]
fn ans_102_the_hint_names_the_version_that_decides_as_recorded() {
    let mut history = History::new(usize::MAX);
    let mut engine = engine();
    let segment = history.begin(0, 0);
    history.put_checkpoint(segment, checkpoint(&engine));
    let mut input = cycle(&mut engine, 0);
    if let RecordedInput::Batch { batch, .. } = &mut input {
        batch.digest ^= 1;
    }
    history.record(&input, 1);
    for (version, hint) in [
        (env!("CARGO_PKG_VERSION"), "hint: `kubectl vc bundle FILE` without --anonymize writes"),
        ("9.8.7", "hint: use the kubectl-vc or vcsim of version 9.8.7, which wrote it; this is"),
    ] {
        let mut writer = BundleWriter::new(&history.copy(), None).unwrap();
        writer.set_process(version, Vec::new());
        let mut bytes = Vec::new();
        writer.write(&mut bytes).unwrap();
        let refused = without_team(&Bundle::read(&*bytes).unwrap()).unwrap_err().to_string();
        let begin = format!("cycle 1 is decided otherwise than it was\n{hint}");
        assert!(refused.starts_with(&begin), "{refused}");
    }
}

#[test]
fn ans_97_commands_are_inputs() {
    let mut engine = engine();
    let mut history = History::new(usize::MAX);
    let segment = history.begin(0, 0);
    history.put_checkpoint(segment, checkpoint(&engine));

    let mut config = Config { actions: vec!["allocate".to_owned()], ..Config::default() };
    config.metrics.insert("elasticsearch.password".to_owned(), "marker".to_owned());
    for command in [EngineCommand::Configure(Box::new(config)), EngineCommand::ServeDevices] {
        history.record(&RecordedInput::Command(command.without_secrets()), engine.n_cycles());
        drop(command.run(&mut engine));
    }
    let input = cycle(&mut engine, 0);
    history.record(&input, engine.n_cycles());
    // The state of the second segment has the configuration.
    let segment = history.begin(engine.n_cycles(), 10 * MINUTE);
    history.put_checkpoint(segment, checkpoint(&engine));
    let bundle = bundle(&history.copy(), None).unwrap();
    let mut replay = Replay::new(&bundle, None).unwrap();
    assert!(replay.step().unwrap().is_same);
    assert_eq!(replay.engine().config().actions, ["allocate"]);
    assert!(replay.engine().cluster().settings.dynamic_resources);
    // Case 102: no secret is in it.
    let has = |name: &str, word: &[u8]| {
        bundle.file(name).unwrap().windows(word.len()).any(|it| it == word)
    };
    let key = b"elasticsearch.password";
    assert!(has("inputs-0.cbor", key) && has("state-1.cbor", key));
    for name in bundle.manifest().files.keys() {
        assert!(!has(name, b"marker"), "{name}");
    }
}

#[test]
fn ans_15_each_configuration_in_force_is_a_file() {
    let mut engine = engine();
    let mut history = History::new(usize::MAX);
    let segment = history.begin(0, 0);
    history.put_checkpoint(segment, checkpoint(&engine));
    // The configuration before each cycle. One is replaced before a cycle, one is as it was.
    let changes: [&[&str]; 4] = [&[], &["backfill", "allocate"], &["allocate"], &["enqueue"]];
    for (minute, actions) in (0..).zip(changes) {
        for &action in actions {
            let config = Config { actions: vec![action.to_owned()], ..Config::default() };
            let command = EngineCommand::Configure(Box::new(config));
            history.record(&RecordedInput::Command(command.clone()), engine.n_cycles());
            drop(command.run(&mut engine));
        }
        let input = cycle(&mut engine, minute);
        history.record(&input, engine.n_cycles());
        if minute == 1 {
            let segment = history.begin(engine.n_cycles(), 10 * MINUTE);
            history.put_checkpoint(segment, checkpoint(&engine));
        }
    }
    let confs = |bundle: &Bundle| {
        let names = bundle.manifest().files.keys().filter(|name| name.starts_with("conf/"));
        let first_line = |name: &String| {
            let text = String::from_utf8_lossy(bundle.file(name).unwrap()).into_owned();
            format!("{name} {}", text.lines().next().unwrap_or_default())
        };
        names.map(first_line).collect::<Vec<String>>()
    };
    let whole = confs(&bundle(&history.copy(), None).unwrap());
    assert!(whole[0].starts_with("conf/0.yaml actions: "), "{whole:?}");
    assert_eq!(whole[1..], ["conf/1.yaml actions: allocate", "conf/3.yaml actions: enqueue"]);
    // The second segment begins after cycle 2, with the configuration of its state.
    let part = confs(&bundle(&history.copy(), Some(1)).unwrap());
    assert_eq!(part, ["conf/2.yaml actions: allocate", "conf/3.yaml actions: enqueue"]);
}
