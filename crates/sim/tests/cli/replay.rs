//! `vcsim run --bundle` and `vcsim replay`. Specification: answers.md 15, 16, cases 95, 98, 101.

use std::io::Read;

use flate2::read::GzDecoder;
use vc_bundle::{
    Bundle, BundleError, BundleWriter, HistoryCopy, RecordedInput, Replay, TextPlace,
    encode_checkpoint,
};
use vc_engine::{BatchKind, EngineBatch};
use vc_sim::bundle_objects::archive_with_objects;

use crate::common::{Called, folder, vcsim};

const CLUSTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/cluster.yaml");
const GANG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gang.yaml");
const WAITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gang-that-waits.yaml");

/// A bundle of three cycles in which one gang starts and one waits.
fn bundle(test: &str) -> String {
    let path = folder(test).join("bundle.tar.gz");
    let path = path.to_str().unwrap().to_owned();
    let flags = ["run", "--cycles", "3", "--kubelet", "instant", "--bundle", &path];
    let called = vcsim(&[&flags[..], &[CLUSTER, GANG, WAITS]].concat());
    assert_eq!(called.code, 0, "{}", called.stderr);
    path
}

/// A bundle of the state after so many cycles of another one, as of a scheduler without a history. The events of the next
/// cycle are in the state already.
fn state_alone(path: &str, n_cycles: u64) -> String {
    let bundle = Bundle::read(&*std::fs::read(path).unwrap()).unwrap();
    let mut replay = Replay::new(&bundle, None).unwrap();
    while replay.next_cycle() <= n_cycles && replay.step().is_some() {}
    let events = replay.next_batch().unwrap().events;
    let mut engine = replay.into_engine();
    engine.apply(events);
    let state = encode_checkpoint(&engine.into_checkpoint(0).unwrap()).unwrap();
    let writer = BundleWriter::new(&HistoryCopy::of_now(n_cycles, state), None).unwrap();
    let mut bytes = Vec::new();
    writer.write(&mut bytes).unwrap();
    let to = format!("{path}.state-{n_cycles}.tar.gz");
    std::fs::write(&to, bytes).unwrap();
    to
}

const UNRECORDED: &str = "not recorded\nthe bundle has a state and no recorded cycle: the next one was \
    decided from the state, and is compared with nothing\n";

/// The contents of a file of an archive.
fn unpacked(bytes: &[u8], name: &str) -> String {
    let mut archive = tar::Archive::new(GzDecoder::new(bytes));
    let mut entries = archive.entries().unwrap().map(Result::unwrap);
    let mut entry = entries.find(|entry| &*entry.path_bytes() == name.as_bytes()).unwrap();
    let mut contents = Vec::new();
    entry.read_to_end(&mut contents).unwrap();
    String::from_utf8_lossy(&contents).into_owned()
}

/// The same archive with one file of it changed.
fn changed(path: &str, name: &str, change: impl Fn(&mut Vec<u8>)) -> String {
    let mut archive = tar::Archive::new(GzDecoder::new(std::fs::File::open(path).unwrap()));
    let to = format!("{path}.changed.tar.gz");
    let out = flate2::write::GzEncoder::new(
        std::fs::File::create(&to).unwrap(),
        flate2::Compression::fast(),
    );
    let mut builder = tar::Builder::new(out);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let of = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut contents = Vec::new();
        entry.read_to_end(&mut contents).unwrap();
        if of == name {
            change(&mut contents);
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(contents.len() as u64);
        header.set_cksum();
        builder.append_data(&mut header, &of, &*contents).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap();
    to
}

/// The same archive with another name for one file of it, as no writer of archives gives.
fn renamed(path: &str, name: &str, other: &str) -> String {
    let mut tar = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_end(&mut tar).unwrap();
    // The name of a file is at the begin of its header, which begins at a multiple of 512 bytes.
    let header = tar.chunks_exact_mut(512).find(|it| it.starts_with(name.as_bytes())).unwrap();
    header[..100].fill(0);
    header[..other.len()].copy_from_slice(other.as_bytes());
    let mut sum = tar::Header::from_byte_slice(header).clone();
    sum.set_cksum();
    header.copy_from_slice(sum.as_bytes());
    let to = format!("{path}.renamed.tar.gz");
    let file = std::fs::File::create(&to).unwrap();
    let mut out = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    std::io::Write::write_all(&mut out, &tar).unwrap();
    out.finish().unwrap();
    to
}

#[test]
fn ans_106_the_cycles_in_a_closed_world() {
    let path = bundle("replay_closed");
    let out = vcsim(&["replay", "--closed", &path]).stdout;
    let rows = |out: &str| -> Vec<String> {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        out.lines().map(words).collect()
    };
    let lines = rows(&out);
    assert!(lines[1].starts_with("in a closed world (a simulation: "), "{out}");
    assert_eq!(
        lines[2..7],
        ["in force", "binds 3", "evictions 0", "jobs started 1", "jobs that wait 1"]
    );
    let conf = folder("replay_closed_file").join("none.conf");
    std::fs::write(&conf, "actions: \"enqueue\"\ntiers:\n- plugins:\n  - name: gang\n").unwrap();
    let out = vcsim(&["replay", "--closed", "--conf", conf.to_str().unwrap(), &path]).stdout;
    let binds = rows(&out).into_iter().find(|line| line.starts_with("binds"));
    assert_eq!(binds.as_deref(), Some("binds 3 0"), "{out}");
    let json = vcsim(&["replay", "--closed", "-o", "json", &path]).json();
    assert_eq!(
        (&json["closed"]["inForce"]["binds"], &json["closed"]["withConf"]),
        (&3.into(), &serde_json::Value::Null)
    );
}

#[test]
fn ans_104_what_was_decided_is_decided_again() {
    let path = bundle("replay_same");
    let called = vcsim(&["replay", &path]);
    assert_eq!(called.stdout, "1..3: 3 cycles, 3 binds, 0 evictions: the same\n");
    assert_eq!((called.code, &*called.stderr), (0, ""));
    let first = vcsim(&["replay", "--until", "1", "-o", "json", &path]).json();
    assert_eq!((&first["kind"], &first["lastCycle"]), (&"ReplayResult".into(), &1.into()));
    assert_eq!((&first["nBinds"], &first["nCycles"]), (&3.into(), &1.into()));
}

#[test]
fn ans_101_the_cycle_after_a_state_is_decided() {
    let path = state_alone(&bundle("replay_state"), 0);
    let first = "1..1: 1 cycle, 3 binds, 0 evictions: ";
    let called = vcsim(&["replay", &path]);
    assert_eq!(called.stdout, format!("{first}{UNRECORDED}"));
    assert_eq!((called.code, &*called.stderr), (0, ""));
    let json = vcsim(&["replay", "-o", "json", &path]).json();
    let cycles = ["firstCycle", "lastCycle", "unrecordedCycle"].map(|name| json[name].as_u64());
    assert_eq!((cycles, &json["nBinds"]), ([Some(1); 3], &3.into()), "{json}");
    // Its state is cycle 0, which both flags may name.
    for flag in ["--at", "--until"] {
        assert_eq!(vcsim(&["replay", flag, "0", &path]).stdout, called.stdout, "{flag}");
        let refused = vcsim(&["replay", flag, "1", &path]);
        assert!(refused.stderr.contains("cycle 1 is not in the bundle: 0..0"), "{flag}");
    }
    // With another configuration nothing starts.
    let conf = folder("replay_state_conf").join("none.conf");
    std::fs::write(&conf, "actions: \"enqueue\"\ntiers:\n- plugins:\n  - name: gang\n").unwrap();
    let out = vcsim(&["replay", "--conf", conf.to_str().unwrap(), &path]).stdout;
    let compared = format!("{first}{UNRECORDED}cycle 1 with the other configuration:\n- placed ");
    assert!(out.starts_with(&compared), "{out}");
    assert_eq!(out.matches("\n- placed   default/trio-").count(), 3, "{out}");
    // A closed world needs what came from outside.
    let closed = vcsim(&["replay", "--closed", &path]);
    let needs = "has a state and no recorded cycle\nhint: --closed runs recorded cycles; ";
    assert!(closed.code == 1 && closed.stderr.contains(needs), "{}", closed.stderr);
}

#[test]
fn ans_101_a_state_answers_why_and_becomes_a_scenario() {
    let recorded = bundle("replay_state_why");
    let path = state_alone(&recorded, 0);
    let file = folder("replay_state_file").join("incident.yaml");
    let file = file.to_str().unwrap();
    let written = vcsim(&["replay", "--to-scenario", file, &path]);
    assert_eq!((written.code, &*written.stderr), (0, ""), "{}", written.stdout);
    let tested = vcsim(&["test", file]);
    let expected = "ok    incident/cycle-1\n1 passed, 0 failed\n";
    assert_eq!((tested.code, &*tested.stdout), (0, expected), "{}", tested.stderr);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains("from the state of a bundle"), "{text}");
    // The state of later, in which one gang runs and one waits.
    let later = state_alone(&recorded, 1);
    let called = vcsim(&["replay", "--why", "quintet", &later]);
    let (out, first) = (&called.stdout, "2..2: 1 cycle, 0 binds, 0 evictions: ");
    assert!(out.starts_with(&format!("{first}{UNRECORDED}")), "{out}");
    assert!(out.contains("\ndefault/quintet (PodGroup, queue default"), "{out}{}", called.stderr);
    let json = vcsim(&["replay", "--why", "quintet", "-o", "json", &later]).json();
    assert_eq!(json["explanation"]["asOf"]["cycle"], 2, "{json}");
    // Objects and a bundle without names are those of the state: nothing was bound in it.
    let objects = folder("replay_state_objects").join("state.yaml");
    let objects = objects.to_str().unwrap();
    let called = vcsim(&["replay", "--to-objects", objects, &path]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    let text = std::fs::read_to_string(objects).unwrap();
    assert!(!text.contains("nodeName"), "{text}");
    let shared = folder("replay_state_shared").join("shared.tar.gz");
    let shared = shared.to_str().unwrap();
    let called = vcsim(&["replay", "--anonymize", "--to-bundle", shared, &path]);
    assert_eq!((called.code, &*called.stderr), (0, ""));
    let again = vcsim(&["replay", shared]).stdout;
    assert_eq!(again, called.stdout);
}

#[test]
fn ans_104_why_a_job_waits_after_a_cycle() {
    let path = bundle("replay_why");
    let called = vcsim(&["replay", "--until", "1", "--why", "quintet", &path]);
    let out = &called.stdout;
    assert!(out.contains("\ndefault/quintet (PodGroup, queue default"), "{out}{}", called.stderr);
    assert!(out.contains("\nWHY "), "{out}");
    let refused = |name: &str| {
        let Called { stderr, code, .. } = vcsim(&["replay", "--why", name, &path]);
        assert_eq!(code, 1, "{stderr}");
        stderr
    };
    assert!(refused("nobody").contains("no job, PodGroup or pod nobody"));
    assert!(refused("default/quintett").contains("quintet"), "the hint names it");
}

#[test]
fn ans_105_the_last_cycle_with_another_configuration() {
    let path = bundle("replay_conf");
    let conf = folder("replay_conf_file").join("other.conf");
    std::fs::write(&conf, "actions: \"enqueue, backfill\"\ntiers:\n- plugins:\n  - name: gang\n")
        .unwrap();
    let conf = conf.to_str().unwrap();
    let called = vcsim(&["replay", "--until", "1", "--conf", conf, &path]);
    let (out, placed) = (&called.stdout, "\n- placed   default/trio-");
    assert!(
        out.contains("cycle 1 with the other configuration:\n- placed"),
        "{out}{}",
        called.stderr
    );
    assert_eq!(out.matches(placed).count(), 3, "{out}");
    assert!(out.contains("\n! waits    default/trio  "), "{out}");
    assert!(out.contains("\n0 placed, 0 evicted, 1 waits (1 cycle, "), "{out}");
    let json = vcsim(&["replay", "--until", "1", "--conf", conf, "-o", "json", &path]).json();
    let (compared, difference) = (&json["withConf"], &json["withConf"]["difference"]);
    assert_eq!(compared["without"].as_array().map(Vec::len), Some(3), "{json}");
    assert_eq!(difference["kind"], "WhatIfResult");
    assert_eq!(difference["asOf"]["source"], "bundle");
    assert_eq!(difference["notPlaced"].as_array().map(Vec::len), Some(3), "{json}");
    assert_eq!(difference["waiting"][0]["podGroup"], "default/trio", "{json}");
    let later = vcsim(&["replay", "--conf", conf, &path]);
    assert!(
        later.stdout.ends_with("cycle 3 with the other configuration: the same\n"),
        "{}",
        later.stdout
    );
    // The one that was in force.
    std::fs::write(conf, vc_conf::CHART).unwrap();
    let same = vcsim(&["replay", "--until", "1", "--conf", conf, &path]).stdout;
    assert!(same.ends_with("cycle 1 with the other configuration: the same\n"), "{same}");
    let missing = vcsim(&["replay", "--conf", "/nowhere.conf", &path]);
    assert_eq!((missing.code, missing.stderr.contains("/nowhere.conf: ")), (1, true));
}

/// In cycle 1 a gang starts; cycle 2 decides nothing.
#[test]
fn ans_105_the_cycle_of_at_with_another_configuration() {
    let path = &*bundle("replay_conf_at");
    let conf = folder("replay_conf_at_file").join("none.conf");
    std::fs::write(&conf, "actions: \"enqueue\"\ntiers:\n- plugins:\n  - name: gang\n").unwrap();
    let conf = conf.to_str().unwrap();
    let compared = |flags: &[&str]| {
        let called = vcsim(&[&["replay", "--conf", conf][..], flags, &[path]].concat());
        assert_eq!(called.code, 0, "{flags:?}: {}", called.stderr);
        let (replayed, compared) = called.stdout.split_once('\n').unwrap();
        (replayed.to_owned(), compared.lines().next().unwrap_or_default().to_owned())
    };
    let line =
        |cycle: u64, rest: &str| format!("cycle {cycle} with the other configuration:{rest}");
    let all = "1..3: 3 cycles, 3 binds, 0 evictions: the same".to_owned();
    assert_eq!(compared(&["--at", "1"]), (all.clone(), line(1, "")));
    assert_eq!(compared(&["--at", "2"]), (all.clone(), line(2, " the same")));
    assert_eq!(compared(&[]), (all, line(3, " the same")));
    let first = "1..1: 1 cycle, 3 binds, 0 evictions: the same".to_owned();
    assert_eq!(compared(&["--until", "1"]), (first.clone(), line(1, "")));
    assert_eq!(compared(&["--at", "1", "--until", "1"]), (first, line(1, "")));
    for (flags, problem) in [
        (["--at", "0", "--until", "3"], "cycle 0 cannot be decided again: the bundle begins with"),
        (["--at", "3", "--until", "2"], "no cycle was replayed\nhint: 0..3 are in the bundle"),
        (["--at", "4", "--until", "3"], "cycle 4 is not in the bundle: 0..3"),
    ] {
        let called = vcsim(&[&["replay", "--conf", conf][..], &flags[..], &[path]].concat());
        assert_eq!(called.code, 1, "{flags:?}: {}", called.stdout);
        assert!(called.stderr.contains(problem), "{flags:?}: {}", called.stderr);
    }
}

/// By hand: on `a` three of four cpus would be used, on `b` one of four.
#[test]
fn ans_105_other_weights_choose_another_node() {
    let folder = folder("replay_weights");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let conf = |least: u32, most: u32| {
        format!(
            "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  \
             - name: predicates\n  - name: nodeorder\n    arguments: {{leastrequested.weight: {least}, \
             mostrequested.weight: {most}, balancedresource.weight: 0}}\n"
        )
    };
    let (spread, pack) = (write("spread.conf", &conf(1, 0)), write("pack.conf", &conf(0, 1)));
    let node = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\nstatus: {{allocatable: {{cpu: \"4\", \
             memory: 8Gi, pods: \"9\"}}}}\n---\n"
        )
    };
    let pod = |name: &str, cpu: u32, more: &str, phase: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  schedulerName: volcano\n{more}  \
             containers: [{{name: c, image: i, resources: {{requests: {{cpu: \"{cpu}\"}}}}}}]\nstatus: {{phase: \
             {phase}}}\n---\n"
        )
    };
    let used = pod("used", 2, "  nodeName: a\n", "Running");
    let text = [node("a"), node("b"), used, pod("new", 1, "", "Pending")].concat();
    let (cluster, bundle) = (write("cluster.yaml", &text), folder.join("bundle.tar.gz"));
    let bundle = bundle.to_str().unwrap();
    let flags = ["run", "--cycles", "2", "--scheduler-conf", &spread, "--bundle", bundle];
    let called = vcsim(&[&flags[..], &[&cluster]].concat());
    assert_eq!(called.code, 0, "{}", called.stderr);
    let said = |conf: &str| {
        let out = vcsim(&["replay", "--until", "1", "--conf", conf, bundle]).stdout;
        out.split_once("with the other configuration").unwrap().1.to_owned()
    };
    let moved =
        ":\n~ moved    default/new b → a\n0 placed, 0 evicted, 0 wait (1 cycle, not settled)\n";
    assert_eq!(said(&pack), moved);
    assert_eq!(said(&spread), ": the same\n");
}

#[test]
fn ans_16_what_is_no_bundle_is_refused() {
    let path = bundle("replay_refused");
    let cases = [
        ("--until", "9", "cycle 9 is not in the bundle: 0..3"),
        ("--at", "9", "cycle 9 is not in the bundle: 0..3"),
    ];
    for (flag, value, expected) in cases {
        let called = vcsim(&["replay", flag, value, &path]);
        assert_eq!(called.code, 1);
        assert!(called.stderr.contains(expected), "{}", called.stderr);
    }
    let none = vcsim(&["replay", "--until", "0", &path]);
    assert!(none.stderr.contains("no cycle was replayed\nhint: 0..3 are in"), "{}", none.stderr);
    let refused = |path: &str| {
        let called = vcsim(&["replay", path]);
        assert_eq!((called.code, &*called.stdout), (1, ""), "{}", called.stderr);
        called.stderr
    };
    assert!(refused("/nowhere.tar.gz").contains("/nowhere.tar.gz: "));
    assert!(refused(CLUSTER).contains("cluster.yaml: no bundle: "));
    let damaged = changed(&path, "inputs-0.cbor", |contents| contents[0] ^= 1);
    assert!(refused(&damaged).contains("inputs-0.cbor: checksum differs"));
    let unknown = renamed(&path, "inputs-0.cbor", "../../evil");
    assert!(refused(&unknown).contains("../../evil: not in the manifest"), "{}", refused(&unknown));
    let newer = changed(&path, "manifest.json", |contents| {
        let text = String::from_utf8(contents.clone()).unwrap();
        *contents = text.replace("\"format\": 4", "\"format\": 5").into_bytes();
    });
    let text = refused(&newer);
    assert!(text.contains("format 5, this version reads 4\nhint: use vcsim "), "{text}");
    let cut = folder("replay_cut").join("cut.tar.gz");
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    assert!(refused(cut.to_str().unwrap()).contains("cut.tar.gz: no bundle: "));
}

/// The bundle with its first batch changed.
fn with_first_batch(path: &str, change: impl Fn(&mut EngineBatch, &mut Vec<String>)) -> String {
    let bytes = std::fs::read(path).unwrap();
    let bundle = Bundle::read(&*bytes).unwrap();
    let mut rest = bundle.file("inputs-0.cbor").unwrap();
    let mut inputs = Vec::new();
    while !rest.is_empty() {
        let mut input: RecordedInput = ciborium::from_reader(&mut rest).unwrap();
        if let (RecordedInput::Batch { batch, effect_lines }, true) =
            (&mut input, inputs.is_empty())
        {
            change(batch, effect_lines);
        }
        ciborium::into_writer(&input, &mut inputs).unwrap();
    }
    let sum = |of: &[u8]| {
        let digest = ring::digest::digest(&ring::digest::SHA256, of);
        digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let (before, after) = (sum(bundle.file("inputs-0.cbor").unwrap()), sum(&inputs));
    let other = changed(path, "inputs-0.cbor", |contents| contents.clone_from(&inputs));
    changed(&other, "manifest.json", |contents| {
        *contents = String::from_utf8(contents.clone()).unwrap().replace(&before, &after).into();
    })
}

#[test]
fn ans_104_the_first_difference_is_shown() {
    let other = with_first_batch(&bundle("replay_differs"), |batch, effect_lines| {
        batch.digest ^= 1;
        let bind = effect_lines.iter_mut().find(|line| line.starts_with("bind "));
        *bind.expect("a gang starts") = "bind default/other to node-9".to_owned();
    });
    let called = vcsim(&["replay", &other]);
    assert_eq!(called.code, 3, "{}{}", called.stdout, called.stderr);
    let lines: Vec<&str> = called.stdout.lines().collect();
    assert_eq!(lines[0], "1..1: 1 cycle, 3 binds, 0 evictions: cycle 1 differs");
    assert_eq!(lines[1], "  recorded  bind default/other to node-9");
    assert!(lines[2].starts_with("  replayed  bind default/"), "{}", lines[2]);
    assert_eq!(lines[3], "the replay ended there");
}

/// The first batch is no whole cycle, and is decided otherwise.
#[test]
fn ans_104_a_difference_before_the_first_cycle_is_in_the_cycle_of_the_state() {
    let other = with_first_batch(&bundle("replay_differs_first"), |batch, _| {
        batch.kind = BatchKind::FollowUp;
        batch.digest ^= 1;
    });
    let called = vcsim(&["replay", &other]);
    assert_eq!(called.code, 3, "{}{}", called.stdout, called.stderr);
    assert!(called.stdout.starts_with("0..0: 0 cycles, "), "{}", called.stdout);
    let json = vcsim(&["replay", "-o", "json", &other]).json();
    let cycles = ["firstCycle", "lastCycle"].map(|name| json[name].as_u64());
    assert_eq!(cycles, [Some(0); 2], "{json}");
}

#[test]
fn ans_107_a_cycle_becomes_a_scenario_that_passes() {
    let path = bundle("replay_scenario");
    let file = folder("replay_scenario_file").join("incident.yaml");
    let file = file.to_str().unwrap();
    let called = vcsim(&["replay", "--until", "1", "--to-scenario", file, &path]);
    assert_eq!((called.code, &*called.stderr), (0, ""), "{}", called.stdout);
    let tested = vcsim(&["test", file]);
    let expected = "ok    incident/cycle-1\n1 passed, 0 failed\n";
    assert_eq!((tested.code, &*tested.stdout), (0, expected), "{}", tested.stderr);
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(text.matches("kind: Node\n").count(), 4, "{text}");
    // What is there is not overwritten.
    let again = vcsim(&["replay", "--until", "1", "--to-scenario", file, &path]);
    assert!(again.stderr.contains("incident.yaml: File exists"), "{}", again.stderr);
    assert_eq!((again.code, &std::fs::read_to_string(file).unwrap()), (1, &text));
    // The cycle of --at is the same one, whatever is replayed after it.
    let other = folder("replay_scenario_at").join("incident.yaml");
    let other = other.to_str().unwrap();
    let called = vcsim(&["replay", "--at", "1", "--to-scenario", other, &path]);
    let all = "1..3: 3 cycles, 3 binds, 0 evictions: the same\n";
    assert_eq!(called.stdout, all, "{}", called.stderr);
    assert_eq!(std::fs::read_to_string(other).unwrap(), text);
}

/// Whatever version reads the objects decides from the state at the end of the bundle.
#[test]
fn ans_103_the_last_state_is_there_as_objects() {
    let path = bundle("replay_objects");
    let bytes = std::fs::read(&path).unwrap();
    let objects = unpacked(&bytes, "objects.yaml");
    assert_eq!(objects.matches("\nkind: Pod\n").count(), 8, "{objects}");
    let file = folder("replay_objects_file").join("objects.yaml");
    let file = file.to_str().unwrap();
    let called = vcsim(&["replay", "--to-objects", file, &path]);
    assert_eq!((called.code, &*called.stderr), (0, ""), "{}", called.stdout);
    assert_eq!(std::fs::read_to_string(file).unwrap(), objects);
    let again = vcsim(&["replay", "--to-objects", file, &path]);
    assert_eq!((again.code, again.stderr.contains("objects.yaml: File exists")), (1, true));
    let mixed = vcsim(&["replay", "--anonymize", "--to-bundle", "x", "--to-objects", "y", &path]);
    assert_eq!(mixed.code, 2, "it would have names: {}", mixed.stderr);
    let ran = vcsim(&["run", "--strict", "-o", "json", file]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{objects}");
    let result = ran.json();
    assert_eq!(result["binds"].as_array().map(Vec::len), Some(0), "the gang runs: {result}");
    let waiting = result["waiting"].as_array().unwrap().iter();
    let waiting: Vec<&str> = waiting.filter_map(|it| it["pod"].as_str()).collect();
    assert_eq!(waiting.len(), 5, "{waiting:?}");
    assert!(waiting.iter().all(|pod| pod.starts_with("default/quintet-")), "{waiting:?}");
}

#[test]
fn ans_103_who_receives_a_bundle_adds_the_objects() {
    let complete = std::fs::read(bundle("replay_add_objects")).unwrap();
    // A copy has no files for people, as a scheduler makes no objects.
    let read = Bundle::read(&*complete).unwrap();
    let nothing = |_: TextPlace, _: &str| -> Option<String> { None };
    let copy = read.renamed(&nothing, &|name: &str| name.to_owned()).unwrap();
    let mut bare = Vec::new();
    copy.write(&mut bare).unwrap();
    assert!(!Bundle::read(&*bare).unwrap().manifest().files.contains_key("objects.yaml"));
    let added = archive_with_objects(&bare).unwrap();
    assert_eq!(unpacked(&added, "objects.yaml"), unpacked(&complete, "objects.yaml"));
    for name in Bundle::read(&*bare).unwrap().manifest().files.keys() {
        assert_eq!(unpacked(&added, name), unpacked(&bare, name), "{name}");
    }
    assert!(archive_with_objects(&added).unwrap() == added, "it has them already");
    let refused = archive_with_objects(&bare[..bare.len() / 2]).unwrap_err();
    assert!(refused.starts_with("no bundle: "), "{refused}");
}

#[test]
fn ans_102_a_scenario_without_names_decides_the_same() {
    let path = bundle("replay_anonymous");
    let file = folder("replay_anonymous_file").join("incident.yaml");
    let file = file.to_str().unwrap();
    let called = vcsim(&["replay", "--until", "1", "--anonymize", "--to-scenario", file, &path]);
    assert_eq!((called.code, &*called.stderr), (0, ""), "{}", called.stdout);
    let tested = vcsim(&["test", file]);
    assert_eq!(tested.code, 0, "{}{}", tested.stdout, tested.stderr);
    let text = std::fs::read_to_string(file).unwrap();
    for name in ["trio", "quintet"] {
        assert!(!text.contains(name), "{name} in {text}");
    }
    let alone = vcsim(&["replay", "--anonymize", &path]);
    assert_eq!(alone.code, 2, "it is about a new file");
}

/// The recorded binds of a bundle of one segment.
fn binds(bundle: &Bundle) -> Vec<String> {
    let mut rest = bundle.file("inputs-0.cbor").unwrap();
    let mut binds = Vec::new();
    while !rest.is_empty() {
        let input: RecordedInput = ciborium::from_reader(&mut rest).unwrap();
        if let RecordedInput::Batch { effect_lines, .. } = input {
            binds.extend(effect_lines.into_iter().filter(|line| line.starts_with("bind ")));
        }
    }
    binds
}

#[test]
fn ans_102_a_bundle_without_names_decides_the_same() {
    let path = bundle("replay_shared");
    let to = folder("replay_shared_file").join("shared.tar.gz");
    let to = to.to_str().unwrap();
    let same = "1..3: 3 cycles, 3 binds, 0 evictions: the same\n";
    let called = vcsim(&["replay", "--anonymize", "--to-bundle", to, &path]);
    assert_eq!((called.code, &*called.stdout, &*called.stderr), (0, same, ""));
    let called = vcsim(&["replay", to]);
    assert_eq!((called.code, &*called.stdout), (0, same), "{}", called.stderr);
    let read = |path: &str| Bundle::read(&*std::fs::read(path).unwrap()).unwrap();
    let (named, shared) = (read(&path), read(to));
    assert!(shared.manifest().anonymized && !named.manifest().anonymized);
    assert_eq!(shared.manifest().files.len(), named.manifest().files.len());
    assert!(shared.manifest().files.contains_key("objects.yaml"));
    for name in shared.manifest().files.keys() {
        let text = |path: &str| unpacked(&std::fs::read(path).unwrap(), name);
        let shared = text(to);
        for word in ["trio", "quintet", "busybox"] {
            assert!(!shared.contains(word), "{word} in {name}");
        }
        // The words are those of the bundle with names.
        let is_conf = name.starts_with("conf/");
        assert!(is_conf || name.starts_with("state-") || text(&path).contains("trio"), "{name}");
    }
    // Numbers, words of Kubernetes and equal names stay: the binds differ by one word alone.
    let (before, after) = (binds(&named), binds(&shared));
    let number = after[0].strip_prefix("bind default/").unwrap();
    let number = number.split('-').next().unwrap();
    let again: Vec<String> = after.iter().map(|line| line.replace(number, "trio")).collect();
    assert_eq!(again, before);
    let why = vcsim(&["replay", "--why", "quintet", to]);
    assert!(why.stderr.contains("no job, PodGroup or pod quintet"), "{}", why.stderr);
    // What is there is not overwritten.
    let again = vcsim(&["replay", "--anonymize", "--to-bundle", to, &path]);
    assert_eq!((again.code, again.stderr.contains("shared.tar.gz: File exists")), (1, true));
    assert_eq!(vcsim(&["replay", "--to-bundle", to, &path]).code, 2, "it needs --anonymize");
}

#[test]
fn ans_102_names_in_another_order_are_refused() {
    let path = bundle("replay_order");
    let bundle = Bundle::read(&*std::fs::read(path).unwrap()).unwrap();
    // The gang starts on the first node. By the new names that is another one.
    let rename = |name: &str| name.replace("node-1", "node-9");
    let change = |_: TextPlace, text: &str| Some(rename(text));
    let refused = bundle.renamed(&change, &rename).unwrap_err();
    let is_expected = matches!(refused, BundleError::NamesDecide { .. } | BundleError::File { .. });
    assert!(is_expected, "{refused}");
}
