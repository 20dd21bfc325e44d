//! The command line against pflag's habits (core.md cases 1 to 4, rust-ecosystem.md case 13).

use super::*;

fn parse(args: &[&str]) -> Result<Flags, clap::Error> {
    Flags::parse(["vc-scheduler"].iter().chain(args).map(Into::into))
}

fn flags(args: &[&str]) -> Flags {
    parse(args).unwrap()
}

#[test]
fn core_1_positional_arguments_are_ignored() {
    let flags = flags(&["--logtostderr", "--scheduler-conf=/x", "-v=3", "2>&1"]);
    assert_eq!(flags.scheduler_conf, PathBuf::from("/x"));
    assert_eq!(flags.verbosity, 3);
}

#[test]
fn core_2_spellings_and_exit_codes() {
    for spelling in ["--leader_elect=false", "--leader-elect=false", "--leader-elect=f"] {
        assert!(flags(&[spelling]).lease.is_none());
    }
    assert!(flags(&["--leader-elect"]).lease.is_some());
    assert_eq!(parse(&["--nope"]).unwrap_err().exit_code(), 2);
    assert_eq!(parse(&["--help"]).unwrap_err().exit_code(), 0);
    assert!(flags(&["--version"]).version);
}

#[test]
fn core_3_scheduler_names_and_the_component_of_events() {
    // The name of the Lease does not follow.
    assert_eq!(flags(&["--scheduler-name=a"]).lease.unwrap().name, "volcano");
    assert_eq!(flags(&[]).scheduler_names, ["volcano"]);
    let names = flags(&["--scheduler-name=a", "--scheduler-name", "b,c"]).scheduler_names;
    assert_eq!(names, ["a", "b,c"]);
    assert_eq!(component(&names), "volcano");
    assert_eq!(component(&names[..1]), "a");
}

#[test]
fn core_4_timings_of_leader_election() {
    let error = |args: &[&str]| flags(args).check().unwrap_err();
    let lease = error(&["--leader-elect-lease-duration=10s"]);
    assert!(lease.starts_with("leader election: lease 10s, renew 10s\nhint: "), "{lease}");
    let renew = error(&["--leader-elect-renew-deadline=2400ms"]);
    assert!(renew.starts_with("leader election: renew 2.4s, retry 2s"), "{renew}");
    let name = error(&["--leader-elect-resource-name="]);
    assert!(name.starts_with("leader election: the Lease has no name\nhint: "), "{name}");
    assert!(flags(&["--leader-elect-lease-duration=10s", "--leader-elect=false"]).check().is_ok());
    assert!(flags(&[]).check().is_ok());
}

#[test]
fn c01_go_plugins_are_refused() {
    let folder = std::env::temp_dir().join(format!("vc-plugins-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let flags = flags(&["--plugins-dir", folder.to_str().unwrap()]);
    assert!(flags.check().is_ok());
    std::fs::write(folder.join("magic.so"), "").unwrap();
    let error = flags.check().unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(error.contains("magic.so: Go plugins cannot be loaded\nhint: "), "{error}");
}

#[test]
fn eco_13_values_as_pflag_reads_them() {
    assert_eq!(flags(&["--v=3"]).verbosity, 3);
    assert_eq!(flags(&["-v", "4"]).verbosity, 4);
    let paced = |args: &[&str]| flags(&[&["--schedule-trigger=period"], args].concat()).pace.period;
    let period = |text: &str| paced(&["--schedule-period=9s", "--schedule_period", text]);
    assert_eq!(period("1m30s"), Duration::from_secs(90));
    assert_eq!(period("0"), Duration::ZERO);
    // A change needs a window in which it is gathered.
    assert_eq!(flags(&["--schedule-period=0"]).pace.period, Duration::from_millis(10));
    assert_eq!(period("1.5ms"), Duration::from_micros(1500));
    for bad in ["5", "-1s", "1d", "", "s", "99999999999999999999h"] {
        let error = parse(&["--schedule-period", bad]).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{bad}");
    }
    assert_eq!(parse(&["--v=x"]).unwrap_err().exit_code(), 2);
    assert_eq!(parse(&["--leader-elect=maybe"]).unwrap_err().exit_code(), 2);
    assert_eq!(parse(&["--schedule-trigger=never"]).unwrap_err().exit_code(), 2);
    assert_eq!(parse(&["--feature-gates=A"]).unwrap_err().exit_code(), 2);
    // A bool does not take the next argument.
    assert!(flags(&["--priority-class", "false"]).priority_class);
}

#[test]
fn lists_and_pairs() {
    let flags = flags(&[
        "--node-selector=a:b, c : d,e",
        "--node-selector",
        "f:",
        "--node-selector=g",
        "--feature_gates=A=true,B=0",
    ]);
    let pairs: Vec<(&str, &str)> =
        flags.node_selector.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(pairs, [("a", "b"), ("c", "d")]);
    assert_eq!(flags.feature_gates, [("A".into(), true), ("B".into(), false)]);
    assert_eq!(flags.pace.trigger, ScheduleTrigger::Change);
}

#[test]
fn only_flags_that_were_changed_are_named_as_without_effect() {
    let flags = flags(&["--logtostderr=true", "--cache-dumper=false", "--scheduler-name=x"]);
    let of = |name| flags.lines.iter().find(|line| line.name == name).unwrap();
    assert!(of("logtostderr").is_default);
    assert!(!of("cache-dumper").is_default);
    assert_eq!(of("cache-dumper").effect, FlagEffect::Built);
    assert_eq!(of("scheduler-name").value, "[x]");
    assert_eq!(of("schedule-period").value, "1s");
    assert_eq!(flags.lines.iter().filter(|line| !line.is_default).count(), 2);
}

#[test]
fn a_gate_without_effect_is_named_and_no_other() {
    let all = "--feature-gates=WorkLoadSupport=false,DynamicResourceAllocation=false,\
        ResourceTopology=false,AllAlpha=true,OfTheFuture=true";
    let flags = flags(&[all]);
    assert_eq!(flags.vain_gates().collect::<Vec<_>>(), ["OfTheFuture"]);
}

#[test]
fn all_alpha_is_for_volcanos_gates_that_are_not_named() {
    let gate = |text: &str, name| flags(&[&format!("--feature-gates={text}")]).gate(name);
    assert_eq!(gate("AllAlpha=true", gates::QUEUE_ADMISSION), Some(true));
    assert_eq!(gate("AllAlpha=false", gates::WORKLOADS), Some(false));
    assert_eq!(gate("WorkLoadSupport=true,AllAlpha=false", gates::WORKLOADS), Some(true));
    assert_eq!(gate("AllAlpha=true", gates::STORAGE_SCORING), None);
    assert_eq!(gate("AllBeta=false", gates::POD_LEVEL), None);
}

#[test]
fn the_deprecated_namespace_wins() {
    let namespace = |args: &[&str]| flags(args).lease.unwrap().namespace;
    assert_eq!(namespace(&[]), "volcano-system");
    let both = ["--lock-object-namespace=a", "--leader-elect-resource-namespace=b"];
    assert_eq!(namespace(&both), "a");
    assert_eq!(namespace(&both[1..]), "b");
}

#[test]
fn the_health_port_speaks_tls_when_all_three_files_are_given() {
    let all = ["--enable-healthz", "--ca-cert-file=a", "--tls-cert-file=b"];
    assert!(flags(&all[1..]).health.is_none());
    assert!(flags(&all).health.unwrap().tls.is_none());
    let all = [&all[..], &["--tls-private-key-file=c"]].concat();
    let tls = flags(&all).health.unwrap().tls.unwrap();
    assert_eq!(tls.clients, ClientCertificates::OfAuthority("a".into()));
    assert_eq!([tls.certificate, tls.key], ["b", "c"].map(PathBuf::from));
}

#[test]
fn tokens_are_not_read_in_the_clear_and_tls_of_metrics_has_its_files() {
    let tls = ["--metrics-tls", "--tls-cert-file=b", "--tls-private-key-file=c"];
    let cases = [
        (vec!["--metrics-authorization"], "--metrics-authorization without --metrics-tls\nhint: "),
        (tls[..1].to_vec(), "--metrics-tls: no --tls-cert-file\nhint: give both PEM files"),
        (tls[..2].to_vec(), "--metrics-tls: no --tls-private-key-file\nhint: give both PEM files"),
    ];
    for (args, text) in cases {
        let error = flags(&args).check().unwrap_err();
        assert!(error.starts_with(text), "{error}");
    }
    let all = [&tls[..], &["--metrics-authorization"]].concat();
    assert_eq!(flags(&all).check(), Ok(()));
    let files = flags(&tls).metrics_tls.unwrap();
    assert!(files.clients == ClientCertificates::NotAsked && files.key.ends_with("c"));
}

#[test]
fn ans_16_answers_without_tokens_stay_on_the_machine_and_tls_has_both_files() {
    let off = "answers-auth=off needs a loopback address, not :11253\nhint: ";
    let pair = "TLS of the answers: a certificate needs its key\nhint: ";
    let cases: [(&[&str], &str); 3] = [
        (&["--enable-answers", "--answers-auth=off"], off),
        (&["--enable-answers", "--answers-tls-cert-file=a"], pair),
        (&["--enable-answers", "--answers-tls-private-key-file=a"], pair),
    ];
    for (args, text) in cases {
        let error = flags(args).check().unwrap_err();
        assert!(error.trim_start_matches("--").starts_with(text), "{error}");
        assert_eq!(flags(&args[1..]).check(), Ok(()), "nobody answers");
    }
    let loopback = ["--enable-answers", "--answers-auth=off", "--answers-address=127.0.0.1:1"];
    assert_eq!(flags(&loopback).check(), Ok(()));
    assert!(!flags(&loopback).answers.unwrap().needs_token);
    assert!(flags(&["--enable-answers"]).answers.unwrap().needs_token);
    assert!(flags(&[]).answers.is_none());
}

#[test]
fn ans_80_the_front_proxy_is_believed_over_tls_only() {
    let aggregated = ["--enable-answers", "--answers-aggregated"];
    let loopback = ["--answers-auth=off", "--answers-address=127.0.0.1:1"];
    let error = flags(&[&aggregated[..], &loopback].concat()).check().unwrap_err();
    let expected = "--answers-aggregated needs TLS, and --answers-auth=off is plain HTTP\nhint: ";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(flags(&[&aggregated[1..], &loopback].concat()).check(), Ok(()), "nobody answers");
    assert_eq!(flags(&aggregated).check(), Ok(()));
    let pair = ["--answers-tls-cert-file=a", "--answers-tls-private-key-file=b"];
    for (args, clients) in [
        (&aggregated[..1], ClientCertificates::NotAsked),
        (&aggregated[..], ClientCertificates::Any),
    ] {
        let answers = flags(&[args, &pair].concat()).answers.unwrap();
        assert_eq!(
            (&answers.tls.as_ref().unwrap().clients, answers.clients()),
            (&clients, clients.clone())
        );
    }
}

#[test]
fn durations_are_printed_as_go_does() {
    let cases = [
        ("0s", 0),
        ("1ns", 1),
        ("1.5µs", 1_500),
        ("100ms", 100_000_000),
        ("1s", 1_000_000_000),
        ("1.25s", 1_250_000_000),
        ("1m0s", 60_000_000_000),
        ("2h3m4.5s", 7_384_500_000_000),
    ];
    for (text, nanos) in cases {
        assert_eq!(go_duration_text(Duration::from_nanos(nanos)), text);
    }
}

#[test]
fn the_document_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/flags.md");
    let text = document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == text, "docs/flags.md is old\nhint: UPDATE_DOCS=1 cargo test -p vc-daemon");
}

#[test]
fn every_flag_of_the_specification_is_there() {
    let text = include_str!("../../../../docs/spec/core.md");
    let section = text.split("## 1.1 Command line").nth(1).unwrap().split("## 1.2").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `-"));
    let cells = rows.filter_map(|line| line.split('|').nth(1));
    let words = cells.flat_map(|cell| cell.split('`')).filter_map(|word| word.strip_prefix("--"));
    let names: Vec<&str> = words.collect();
    assert!(50 < names.len(), "{}", names.len());
    for name in names {
        assert!(TABLE.iter().any(|row| row.name == name), "--{name}");
    }
}
