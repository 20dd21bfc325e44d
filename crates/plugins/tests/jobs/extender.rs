//! Cases 97-101 of plugins-jobs-queues.md: the plugin `extender` with a service that says what the
//! test wants. What the service says over HTTP is tested in `vc-kube`.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vc_conf::{ActionSettings, Config, Tier};
use vc_framework::{
    ExtenderAnswer, ExtenderClient, ExtenderError, ExtenderQuery, ExtenderRequest,
    OperationRefused, PluginSet, Question, Session, SessionView,
};
use vc_model::{Code, Finding, NodeId, TaskId, fixture};

use crate::support::{job, opening, plugin, plugin_option, queue, task, tasks};

type Result = std::result::Result<ExtenderAnswer, ExtenderError>;

/// A service that answers from a closure and keeps the requests.
struct Service<F> {
    answer: F,
    asked: Mutex<Vec<String>>,
    timeouts: Mutex<Vec<Duration>>,
}

impl<F> fmt::Debug for Service<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Service")
    }
}

impl<F: Fn(&str) -> Result + Send + Sync> ExtenderClient for Service<F> {
    fn exchange(&self, request: &ExtenderRequest<'_>) -> Result {
        let asked = line(request);
        let answer = (self.answer)(&asked);
        self.asked.lock().expect("no holder panics").push(asked);
        self.timeouts.lock().expect("no holder panics").push(request.timeout);
        answer
    }
}

/// Verb and objects of a request.
fn line(request: &ExtenderRequest<'_>) -> String {
    let verb = request.url.rsplit('/').next().expect("split gives one part");
    let cluster = request.view.cluster;
    let name = |task: TaskId| cluster.tasks[task].key.name.to_string();
    let node = |node: NodeId| cluster.nodes[node].name.to_string();
    let about = match request.query {
        ExtenderQuery::SessionOpen | ExtenderQuery::SessionClose => String::new(),
        ExtenderQuery::Predicate { task, node: of } => format!("{} {}", name(task), node(of)),
        ExtenderQuery::Prioritize { task, .. } => name(task),
        ExtenderQuery::Preemptable { evictor, .. } | ExtenderQuery::Reclaimable { evictor, .. } => {
            name(evictor)
        }
        ExtenderQuery::JobEnqueueable(job)
        | ExtenderQuery::JobEnqueued(job)
        | ExtenderQuery::JobReady(job) => cluster.jobs[job].key.name.to_string(),
        ExtenderQuery::QueueOverused(queue) => cluster.queues[queue].name.to_string(),
        ExtenderQuery::Allocate { task, placed } => {
            let place = placed.map(|(status, at)| format!(" {} {}", status.as_str(), node(at)));
            format!("{}{}", name(task), place.unwrap_or_default())
        }
        ExtenderQuery::Deallocate(task) => name(task),
    };
    format!("{verb} {about}").trim_end().to_owned()
}

const CLUSTER: &str = "
    node n1 cpu=4 gpu=4
    node n2 cpu=4 gpu=4
    queue q
    job low queue=q
      task a cpu=1 @n1 running preemptable
      task b cpu=1 @n1 running preemptable
    job high queue=q priority=9
      task c cpu=1
      task g cpu=1 gpu=1
      task i cpu=1";

/// The verb of each hook is its name.
pub(crate) const ALL_HOOKS: &str = "extender.onSessionOpenVerb=onSessionOpen \
    extender.onSessionCloseVerb=onSessionClose extender.predicateVerb=predicate \
    extender.prioritizeVerb=prioritize extender.preemptableVerb=preemptable \
    extender.reclaimableVerb=reclaimable extender.queueOverusedVerb=queueOverused \
    extender.jobEnqueueableVerb=jobEnqueueable extender.jobEnqueuedVerb=jobEnqueued \
    extender.jobReadyVerb=jobReady extender.allocateFuncVerb=allocateFunc \
    extender.deallocateFuncVerb=deallocateFunc";

/// Runs one session with a service, and returns what it was asked.
fn asked(
    arguments: &str,
    answer: impl Fn(&str) -> Result + Send + Sync + 'static,
    check: impl FnOnce(&mut Session<'_>),
) -> Vec<String> {
    session(arguments, answer, check).0
}

/// Returns what the service was asked in one session, and the warnings.
fn session(
    arguments: &str,
    answer: impl Fn(&str) -> Result + Send + Sync + 'static,
    check: impl FnOnce(&mut Session<'_>),
) -> (Vec<String>, Vec<String>) {
    let service = Arc::new(Service { answer, asked: Mutex::default(), timeouts: Mutex::default() });
    let client: Arc<dyn ExtenderClient> = service.clone();
    let warnings = with_client(arguments, Some(&client), check);
    let timeouts = service.timeouts.lock().expect("no holder panics");
    assert!(timeouts.iter().all(|timeout| *timeout == Duration::from_secs(1)), "the default");
    let asked = service.asked.lock().expect("no holder panics").clone();
    (asked, warnings)
}

fn with_client(
    arguments: &str,
    client: Option<&Arc<dyn ExtenderClient>>,
    check: impl FnOnce(&mut Session<'_>),
) -> Vec<String> {
    let extender = format!("extender extender.urlPrefix=http://e/ {ALL_HOOKS} {arguments}");
    let mut cluster = fixture::cluster(CLUSTER);
    let (mut plugins, built) = PluginSet::new(&config(&[&extender, "gang"]), vc_plugins::ALL);
    assert_eq!(built, []);
    client.into_iter().for_each(|client| plugins.connect(client));
    let settings = ActionSettings::default();
    let mut session = Session::open(&mut cluster, &mut plugins, &settings, opening(0));
    check(&mut session);
    session.close_plugins();
    let (outbox, ..) = session.finish();
    assert_eq!(cluster.check(), Ok(()));
    outbox.warnings
}

/// One tier for each plugin.
fn config(plugins: &[&str]) -> Config {
    let tier = |text: &&str| Tier { plugins: vec![plugin_option(text)] };
    Config { tiers: plugins.iter().map(tier).collect(), ..Config::default() }
}

/// What building the plugin warns of.
fn warnings(plugin: &str) -> Vec<String> {
    let (_, warnings) = PluginSet::new(&config(&[plugin]), vc_plugins::ALL);
    warnings.iter().map(ToString::to_string).collect()
}

fn yes(_: &str) -> Result {
    Ok(ExtenderAnswer { is_true: true, ..ExtenderAnswer::default() })
}

fn zero(_: &str) -> Result {
    Ok(ExtenderAnswer::default())
}

/// Every hook fails but onSessionOpen.
fn broken(asked: &str) -> Result {
    match asked {
        "onSessionOpen" => zero(asked),
        _ => Err(ExtenderError::BadAnswer("status 500 Internal Server Error".to_owned())),
    }
}

fn node(view: SessionView<'_>, name: &str) -> NodeId {
    fixture::node(view.cluster, name)
}

fn findings(session: &Session<'_>, path: &str, on: &str) -> Vec<(Code, String)> {
    let view = session.view();
    let mut findings: Vec<Finding> = Vec::new();
    session.plugins().predicate(view, task(session, path), node(view, on), &mut findings);
    let dims = &view.cluster.dims;
    findings.into_iter().map(|finding| (finding.code, finding.reason.text(dims))).collect()
}

const IGNORABLE: &str = "extender.ignorable=true";

#[test]
fn case_97_the_default_timeout_is_one_second() {
    let asked = asked("", zero, |_| {});
    assert_eq!(asked, ["onSessionOpen", "onSessionClose"]);
    for (value, problem) in
        [("\"soon\"", "not a positive duration: \"soon\""), ("5", "duration: 5"), ("\"0s\"", "0s")]
    {
        let text = format!("extender extender.httpTimeout={value}");
        let warnings = warnings(&text);
        assert!(warnings.len() == 1 && warnings[0].contains(problem), "{warnings:?}");
        assert!(warnings[0].contains("the default 1s is in force"), "{warnings:?}");
    }
}

#[test]
fn a_url_that_cannot_work_gives_a_warning() {
    let hook = "extender.predicateVerb=p";
    assert_eq!(warnings("extender"), [""; 0], "no hook, no service");
    for (url, problem) in [("e:80", "neither http:// nor https://"), ("http://a:b@e", "not sent")] {
        let found = warnings(&format!("extender {hook} extender.urlPrefix={url}"));
        assert!(found.len() == 1 && found[0].contains(problem), "{found:?}");
        assert!(found[0].contains("write a URL such as"), "{found:?}");
    }
    let found = warnings(&format!("extender {hook}"));
    assert!(found.len() == 1 && found[0].contains("urlPrefix"), "{found:?}");
}

#[test]
fn only_configured_hooks_are_registered() {
    let points = plugin("extender extender.jobReadyVerb=ready").points();
    assert_eq!(points, vc_framework::Points::JOB_READY);
    assert_eq!(plugin("extender").points(), vc_framework::Points::NONE);
    // A value of another type counts as empty.
    assert_eq!(plugin("extender extender.jobReadyVerb=5").points(), vc_framework::Points::NONE);
}

/// The amount of a limit is a request by the time the pod is stored; init containers are part of
/// the request.
#[test]
fn case_98_only_pods_of_interest_are_asked_about() {
    let list = "extender.managedResources=[\"nvidia.com/gpu\",\"example.com/fpga\"]";
    let text = "extender.managedResources=example.com/fpga,nvidia.com/gpu";
    for arguments in [list, text] {
        let asked = asked(arguments, yes, |session| {
            for path in ["high/c", "high/g"] {
                assert_eq!(findings(session, path, "n1"), []);
            }
            let [c, g] = [task(session, "high/c"), task(session, "high/g")];
            let candidates = tasks(session, &["low/a", "low/b"]);
            let view = session.view();
            let nodes = [node(view, "n1"), node(view, "n2")];
            for evictor in [c, g] {
                session.plugins().scores(view, evictor, &nodes);
                session.plugins().preemptable(view, evictor, &candidates);
                session.plugins().reclaimable(view, evictor, &candidates);
            }
            let mut statement = session.statement();
            for (task, node) in [c, g].into_iter().zip(nodes) {
                statement.allocate(task, node).expect("given");
            }
        });
        let expected = [
            "onSessionOpen",
            "predicate high-g n1",
            "prioritize high-g",
            "preemptable high-g",
            "reclaimable high-g",
            "allocateFunc high-g Allocated n2",
            "deallocateFunc high-g",
            "onSessionClose",
        ];
        assert_eq!(asked, expected);
    }
    let asked = asked("extender.managedResources=cpu", yes, |session| {
        assert_eq!(findings(session, "high/i", "n1"), []);
    });
    assert_eq!(asked[1], "predicate high-i n1");
}

#[test]
fn case_99_answers_of_predicate() {
    for (code, expected) in [
        (0, Code::Error),
        (1, Code::Error),
        (2, Code::Unschedulable),
        (3, Code::Unresolvable),
        (4, Code::Error),
        (-7, Code::Error),
    ] {
        let no = move |asked: &str| match asked.starts_with("predicate") {
            true => Ok(ExtenderAnswer { message: "no".to_owned(), code, ..Default::default() }),
            false => zero(asked),
        };
        asked("", no, |session| {
            assert_eq!(findings(session, "high/c", "n1"), [(expected, "no".to_owned())]);
            // All nodes at once: code 3 excludes the node from evictions.
            let nodes = session.info().nodes.clone();
            let task = task(session, "high/c");
            let scan = session.filter(task, &nodes, vc_framework::Filter::Preempt);
            let feasible = if expected == Code::Unschedulable { 2 } else { 0 };
            assert_eq!((scan.feasible.len(), scan.errors.n_nodes), (feasible, 2 - feasible as u32));
            let is_unresolvable = scan.errors.is_unresolvable(nodes[0]);
            assert_eq!(is_unresolvable, expected == Code::Unresolvable);
        });
    }
    asked("", zero, |session| assert_eq!(findings(session, "high/c", "n1"), []));
    let failed = "extender: status 500 Internal Server Error".to_owned();
    asked("", broken, |session| {
        assert_eq!(findings(session, "high/c", "n1"), [(Code::Error, failed)]);
    });
    asked(IGNORABLE, broken, |session| assert_eq!(findings(session, "high/c", "n1"), []));
}

/// One request for each node that passes everything else, and no other.
#[test]
fn nodes_are_asked_about_once_each() {
    let second = |asked: &str| {
        let message = if asked == "predicate high-c n1" { "taken" } else { "" };
        Ok(ExtenderAnswer { message: message.to_owned(), ..Default::default() })
    };
    let asked = asked("", second, |session| {
        let nodes = session.info().nodes.clone();
        let task = task(session, "high/c");
        let scan = session.filter(task, &nodes, vc_framework::Filter::Allocate);
        assert_eq!(scan.feasible, [node(session.view(), "n2")]);
    });
    let expected =
        ["onSessionOpen", "predicate high-c n1", "predicate high-c n2", "onSessionClose"];
    assert_eq!(asked, expected);
}

#[test]
fn case_100_answers_about_jobs_and_queues() {
    let state = |arguments: &str, answer: fn(&str) -> Result| {
        let mut found = (true, true, true);
        asked(arguments, answer, |session| {
            let (view, plugins) = (session.view(), session.plugins());
            let (job, queue) = (job(session, "low"), queue(session, "q"));
            let admitted = plugins.job_enqueueable(view, job).is_ok();
            found = (admitted, plugins.overused(view, queue), plugins.job_ready(view, job));
        });
        found
    };
    // Zero: an abstention, which admits; not overused; not ready.
    assert_eq!(state("", zero), (true, false, false));
    assert_eq!(state("", yes), (true, true, true));
    assert_eq!(state("", broken), (false, true, false));
    assert_eq!(state(IGNORABLE, broken), (true, false, true));
    let rejects = |_: &str| Ok(ExtenderAnswer { code: -1, ..Default::default() });
    assert!(!state("", rejects).0);
}

/// Returns the victims that preempt and reclaim may take.
fn victims(
    arguments: &str,
    answer: impl Fn(&str) -> Result + Send + Sync + 'static,
) -> Vec<String> {
    let mut found = Vec::new();
    asked(arguments, answer, |session| {
        let candidates = tasks(session, &["low/a", "low/b"]);
        let evictor = task(session, "high/c");
        for question in [Question::Preempt(evictor), Question::Reclaim(evictor)] {
            let selected = session.select_victims(question, &candidates).victims;
            let name = |victim: &TaskId| session.tasks[*victim].key.name.to_string();
            found.push(selected.iter().map(name).collect::<Vec<_>>().join(" "));
        }
    });
    found
}

fn naming(code: i64, uids: &[&str]) -> impl Fn(&str) -> Result + use<> {
    let victims: Vec<String> = uids.iter().map(|uid| (*uid).to_owned()).collect();
    move |_| Ok(ExtenderAnswer { code, victims: victims.clone(), ..Default::default() })
}

#[test]
fn case_100_victims_are_those_that_were_offered() {
    let uid = |path: &str| {
        let cluster = fixture::cluster(CLUSTER);
        cluster.tasks[fixture::task(&cluster, path)].uid.to_string()
    };
    let (a, b, c) = (uid("low/a"), uid("low/b"), uid("high/c"));
    // Without a vote, gang decides: both may go.
    let everyone = victims("", zero);
    assert_eq!(victims("", naming(0, &[&a])), everyone, "status 0 abstains");
    assert_eq!(victims(IGNORABLE, broken), everyone, "D34: an ignorable failure abstains");
    for (answer, expected) in [
        (naming(1, &[&b, "ghost", &c, &b, ""]), "low-b"),
        (naming(-1, &[&b, &a]), "low-a low-b"),
        (naming(1, &[]), ""),
    ] {
        let mut found = Vec::new();
        // extender alone in the first tier decides.
        alone("", answer, |session| {
            let candidates = tasks(session, &["low/a", "low/b"]);
            let evictor = task(session, "high/c");
            let selected = session.select_victims(Question::Preempt(evictor), &candidates).victims;
            let name = |victim: &TaskId| session.tasks[*victim].key.name.to_string();
            found = selected.iter().map(name).collect();
        });
        assert_eq!(found.join(" "), expected);
    }
}

/// One session in which `extender` is the only plugin; returns the warnings.
fn alone(
    arguments: &str,
    answer: impl Fn(&str) -> Result + Send + Sync + 'static,
    check: impl FnOnce(&mut Session<'_>),
) -> Vec<String> {
    let service = Arc::new(Service { answer, asked: Mutex::default(), timeouts: Mutex::default() });
    let client: Arc<dyn ExtenderClient> = service;
    let extender = format!("extender extender.urlPrefix=http://e {ALL_HOOKS} {arguments}");
    let mut cluster = fixture::cluster(CLUSTER);
    let (mut plugins, _) = PluginSet::new(&config(&[&extender]), vc_plugins::ALL);
    plugins.connect(&client);
    let settings = ActionSettings::default();
    let mut session = Session::open(&mut cluster, &mut plugins, &settings, opening(0));
    check(&mut session);
    session.close_plugins();
    session.finish().0.warnings
}

#[test]
fn case_100_a_failed_vote_lets_nobody_go() {
    let mut left = None;
    alone("", broken, |session| {
        let candidates = tasks(session, &["low/a", "low/b"]);
        let evictor = task(session, "high/c");
        left = Some(session.select_victims(Question::Preempt(evictor), &candidates).victims);
    });
    assert_eq!(left, Some(Vec::new()));
}

#[test]
fn answers_about_what_was_not_asked_are_left_out() {
    let liar = |asked: &str| {
        let scores = [("n2", 7.0), ("ghost", 1e308), ("n2", 0.5)];
        let scores = scores.map(|(name, score)| (name.to_owned(), score)).to_vec();
        let victims = vec!["no\nsuch".to_owned()];
        match asked {
            "onSessionOpen" => zero(asked),
            _ => Ok(ExtenderAnswer { scores, victims, code: 1, ..Default::default() }),
        }
    };
    let (_, warnings) = session("", liar, |session| {
        let view = session.view();
        let nodes = [node(view, "n1"), node(view, "n2")];
        let task = task(session, "high/c");
        assert_eq!(session.plugins().scores(view, task, &nodes), [0.0, 7.5]);
        let candidates = tasks(session, &["low/a"]);
        session.plugins().preemptable(view, task, &candidates);
    });
    let expected = [
        "plugin extender: prioritize of http://e: the answer scores node ghost, which was not \
         offered; it is left out. Correct the service.",
        "plugin extender: preemptable of http://e: the answer names the victim \"no\\nsuch\", \
         which was not offered; it is left out. Correct the service.",
    ];
    assert_eq!(warnings, expected);
}

/// D37: no scores and no message are no scores. Scores are added as they are, however large.
#[test]
fn scores_count_as_they_are() {
    let scores = |answer: fn(&str) -> Result, arguments: &str| {
        let mut found = Vec::new();
        asked(arguments, answer, |session| {
            let view = session.view();
            let nodes = [node(view, "n1"), node(view, "n2")];
            found = session.plugins().scores(view, task(session, "high/c"), &nodes);
        });
        found
    };
    let large = |_: &str| {
        let scores = vec![("n1".to_owned(), -1e300), ("n2".to_owned(), 1e300)];
        Ok(ExtenderAnswer { scores, ..Default::default() })
    };
    let refuses = |_: &str| {
        let scores = vec![("n1".to_owned(), 5.0)];
        Ok(ExtenderAnswer { scores, message: "out of order".to_owned(), ..Default::default() })
    };
    assert_eq!(scores(large, ""), [-1e300, 1e300]);
    for (answer, arguments) in
        [(zero as fn(&str) -> Result, ""), (refuses, ""), (broken, ""), (broken, IGNORABLE)]
    {
        assert_eq!(scores(answer, arguments), [0.0, 0.0]);
    }
}

#[test]
fn case_101_a_message_rolls_the_placement_back() {
    let refuses = |asked: &str| {
        let message = if asked.starts_with("allocateFunc") { "x" } else { "" };
        Ok(ExtenderAnswer { message: message.to_owned(), ..Default::default() })
    };
    for (arguments, is_placed) in [("", false), (IGNORABLE, false)] {
        let asked = asked(arguments, refuses, |session| {
            let (task, node) = (task(session, "high/c"), node(session.view(), "n2"));
            let mut statement = session.statement();
            let refused = Err(OperationRefused::NotReserved);
            assert_eq!(statement.allocate(task, node), refused);
            assert_eq!(statement.tasks[task].node.is_some(), is_placed);
        });
        let expected = [
            "onSessionOpen",
            "allocateFunc high-c Allocated n2",
            "deallocateFunc high-c",
            "onSessionClose",
        ];
        assert_eq!(asked, expected);
    }
    // A failure counts as a refusal unless it is ignorable.
    for (arguments, is_refused) in [("", true), (IGNORABLE, false)] {
        asked(arguments, broken, |session| {
            let (task, node) = (task(session, "high/c"), node(session.view(), "n2"));
            let placed = session.statement().allocate(task, node);
            assert_eq!(placed.is_err(), is_refused);
        });
    }
}

#[test]
fn evictions_and_their_undoing_are_told() {
    let asked = asked("", zero, |session| {
        let task = task(session, "low/a");
        let mut statement = session.statement();
        statement.evict(task, vc_framework::EvictReason::Preempt, None).expect("given");
        statement.discard();
    });
    let expected =
        ["onSessionOpen", "deallocateFunc low-a", "allocateFunc low-a", "onSessionClose"];
    assert_eq!(asked, expected);
}

#[test]
fn case_101_no_hook_is_called_after_a_failed_opening() {
    let fails = |asked: &str| match asked {
        "onSessionOpen" => Err(ExtenderError::BadAnswer("status 404 Not Found".to_owned())),
        _ => Ok(ExtenderAnswer { message: "no".to_owned(), ..Default::default() }),
    };
    let (asked, warnings) = session("", fails, |session| {
        assert_eq!(findings(session, "high/c", "n1"), []);
        let (view, plugins) = (session.view(), session.plugins());
        assert!(plugins.job_ready(view, job(session, "low")));
        assert!(!plugins.overused(view, queue(session, "q")));
        let (task, node) = (task(session, "high/c"), node(view, "n2"));
        session.statement().allocate(task, node).expect("given");
    });
    assert_eq!(asked, ["onSessionOpen", "onSessionClose"]);
    let expected = "plugin extender: onSessionOpen of http://e failed: status 404 Not Found. No \
        hook is called in this cycle, so pods are placed without the service. Check the service.";
    assert_eq!(warnings, [expected]);
    let (asked, _) = session(IGNORABLE, fails, |session| {
        assert_eq!(findings(session, "high/c", "n1"), [(Code::Error, "no".to_owned())]);
    });
    assert_eq!(asked, ["onSessionOpen", "predicate high-c n1", "onSessionClose"]);
}

/// D50: a service that does not answer costs a cycle one time-out.
#[test]
fn a_service_that_hangs_is_asked_once_in_a_cycle() {
    let hangs = |asked: &str| match asked {
        "onSessionOpen" => zero(asked),
        _ => Err(ExtenderError::Unreachable("no answer within 1s".to_owned())),
    };
    let (asked, warnings) = session("", hangs, |session| {
        for path in ["high/c", "high/g"] {
            for node in ["n1", "n2"] {
                let expected = "extender: no answer within 1s".to_owned();
                assert_eq!(findings(session, path, node), [(Code::Error, expected)]);
            }
        }
        let view = session.view();
        assert!(!session.plugins().job_ready(view, job(session, "low")));
    });
    assert_eq!(asked, ["onSessionOpen", "predicate high-c n1"]);
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let expected = "plugin extender: predicate of http://e failed: no answer within 1s. It \
        counts as a no. Check the service, or set extender.ignorable to decide without it.";
    assert_eq!(warnings[1], expected);
}

#[test]
fn a_program_without_client_counts_as_a_service_that_is_down() {
    for (arguments, is_ready) in [("", true), (IGNORABLE, true)] {
        let warnings = with_client(arguments, None, |session| {
            let view = session.view();
            assert_eq!(session.plugins().job_ready(view, job(session, "low")), is_ready);
        });
        assert!(warnings[0].contains("this program sends no requests"), "{warnings:?}");
    }
}

#[test]
fn texts_of_the_service_are_shortened() {
    let long = |asked: &str| {
        let message =
            if asked.starts_with("predicate") { "x\n".repeat(1_000) } else { String::new() };
        Ok(ExtenderAnswer { message, ..Default::default() })
    };
    asked("", long, |session| {
        let found = findings(session, "high/c", "n1");
        assert_eq!(found[0].1, format!("{}…", "x ".repeat(128)));
    });
}
