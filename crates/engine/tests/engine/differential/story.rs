//! Random stories: a cluster, and what happens in it between cycles, as the text of
//! `support::text` and of `edge`.

use std::fmt;

use proptest::prelude::*;
use vc_model::{PodPhase, ShardingMode};

use super::configs::{CARDS, Choice, GROUPS, LOADS, NETWORKS, NUMA, ROLES, USAGES, drawn};
use super::lines::{first_lines, line};
use super::objects::*;

/// What happens to the objects.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Objects come or are replaced.
    Add(String),
    /// A line for the edge: objects beside the tables, and whatever goes.
    Tell(String),
    /// The pod of this place in the order of names, if there are so many.
    DeletePod(usize),
    /// It ends when its kubelet has seen it.
    Terminate(usize),
    /// A pod that has a node ends.
    End(usize, PodPhase),
    /// A pod has another value of `app`.
    Label(usize, &'static str),
    /// A pod without node has no gate any more.
    Ungate(usize),
    /// A pod is resized to so many cpu.
    Resize(usize, u32),
    /// A word of a PodGroup is another one.
    Regroup(String, String),
    /// Bound pods run, deleted pods go.
    Kubelets,
    /// The same, and what went is replaced.
    Controllers,
    /// Seconds pass.
    Tick(i64),
    /// Another configuration.
    Configure(Choice),
    /// Of the writes of the next cycle, every so many fail.
    Refuse(usize),
    /// The next cycle hears nothing of these kinds yet: bits of `edge::LATE`.
    Late(u8),
}

/// What the command line says.
#[derive(Clone, Debug)]
pub(super) struct Flags {
    pub(super) sharding: ShardingMode,
    pub(super) queue_gate: bool,
    pub(super) bare_pods: bool,
    pub(super) capacity_scoring: bool,
    /// How many bytes of walks are kept; `None`: as many as usual.
    pub(super) victim_index_bytes: Option<usize>,
}

/// A cluster, and what happens before each cycle; before many, nothing.
#[derive(Clone)]
pub(super) struct Story {
    pub(super) choice: Choice,
    pub(super) flags: Flags,
    pub(super) cluster: String,
    pub(super) reported: Vec<String>,
    pub(super) turns: Vec<Vec<Step>>,
}

/// As somebody reads it who looks for the fault.
impl fmt::Debug for Story {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}\n{:?}\n{}", self.choice, self.flags, self.cluster)?;
        write!(out, "{}", self.reported.join("\n"))?;
        self.turns.iter().try_for_each(|steps| write!(out, "\n--- {steps:?}"))
    }
}

impl fmt::Display for Story {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

/// One of these words, the first ones where it is shrunk.
pub(super) fn pick(words: &[(u32, &'static str)]) -> impl Strategy<Value = &'static str> + use<> {
    let times = |&(weight, word): &(u32, &'static str)| (0..weight).map(move |_| word);
    prop::sample::select(words.iter().flat_map(times).collect::<Vec<_>>())
}

fn name(letter: char, count: u32) -> impl Strategy<Value = String> {
    (0..count).prop_map(move |number| format!("{letter}{number}"))
}

fn step(size: Size) -> impl Strategy<Value = Step> {
    let place = move || 0_usize..size.pods;
    let phase = prop_oneof![Just(PodPhase::Succeeded), Just(PodPhase::Failed)];
    let seconds = prop_oneof![3 => Just(1_i64), 2 => Just(61), 2 => Just(3600), 1 => Just(-90)];
    let objects = prop_oneof![
        3 => node(size).prop_map(Step::Add),
        2 => queue(size).prop_map(Step::Add),
        6 => job(size).prop_map(Step::Add),
        3 => line(size).prop_map(Step::Tell),
        1 => bare(size).prop_map(Step::Tell),
        1 => name('n', size.nodes).prop_map(|name| Step::Tell(format!("gone node {name}"))),
        1 => name('q', size.queues).prop_map(|name| Step::Tell(format!("gone queue {name}"))),
        1 => name('j', size.jobs).prop_map(|name| Step::Tell(format!("gone job {name}"))),
    ];
    let app = pick(&[(1, "a"), (1, "b")]);
    let pods = prop_oneof![
        2 => place().prop_map(Step::DeletePod),
        1 => place().prop_map(Step::Terminate),
        2 => (place(), phase).prop_map(|(place, phase)| Step::End(place, phase)),
        1 => (place(), app).prop_map(|(place, app)| Step::Label(place, app)),
        1 => place().prop_map(Step::Ungate),
        1 => (place(), 0_u32..4).prop_map(|(place, cpu)| Step::Resize(place, cpu)),
        1 => (name('j', size.jobs), regroup(size)).prop_map(|(job, word)| Step::Regroup(job, word)),
    ];
    prop_oneof![
        8 => Just(Step::Kubelets),
        4 => Just(Step::Controllers),
        17 => objects,
        9 => pods,
        5 => seconds.prop_map(Step::Tick),
        1 => drawn_or_usual().prop_map(Step::Configure),
        2 => (1_usize..4).prop_map(Step::Refuse),
        2 => (1_u8..16).prop_map(Step::Late),
    ]
}

/// A configuration for stories of this theme.
fn choice(theme: Theme) -> BoxedStrategy<Choice> {
    match theme {
        Theme::Networks => {
            prop_oneof![3 => NETWORKS.prop_map(Choice::Usual), 1 => drawn_or_usual()].boxed()
        }
        Theme::Groups => {
            prop_oneof![3 => GROUPS.prop_map(Choice::Usual), 1 => drawn_or_usual()].boxed()
        }
        Theme::Usages => {
            prop_oneof![3 => USAGES.prop_map(Choice::Usual), 1 => drawn_or_usual()].boxed()
        }
        Theme::Cards => {
            prop_oneof![3 => CARDS.prop_map(Choice::Usual), 1 => drawn_or_usual()].boxed()
        }
        Theme::Loads => {
            prop_oneof![3 => LOADS.prop_map(Choice::Usual), 1 => drawn_or_usual()].boxed()
        }
        Theme::Roles => {
            prop_oneof![3 => ROLES.prop_map(Choice::Usual), 1 => drawn_or_usual()].boxed()
        }
        Theme::Numa => {
            prop_oneof![3 => NUMA.prop_map(Choice::Usual), 1 => drawn_or_usual()].boxed()
        }
        _ => drawn_or_usual().boxed(),
    }
}

fn drawn_or_usual() -> impl Strategy<Value = Choice> {
    prop_oneof![1 => (0_usize..64).prop_map(Choice::Usual), 1 => drawn()]
}

fn flags() -> impl Strategy<Value = Flags> {
    let sharding = prop_oneof![
        8 => Just(ShardingMode::None),
        1 => Just(ShardingMode::Soft),
        1 => Just(ShardingMode::Hard),
    ];
    let seldom = || prop::bool::weighted(0.15);
    let victim_index_bytes = prop_oneof![6 => Just(None), 1 => (0_usize..4000).prop_map(Some)];
    (sharding, seldom(), seldom(), seldom(), victim_index_bytes).prop_map(
        |(sharding, queue_gate, bare_pods, capacity_scoring, victim_index_bytes)| Flags {
            sharding,
            queue_gate,
            bare_pods,
            capacity_scoring,
            victim_index_bytes,
        },
    )
}

fn stories_of(size: Size) -> impl Strategy<Value = Story> {
    let most = |names: u32| usize::try_from(names.min(30)).unwrap_or_default() + 2;
    let nodes = prop::collection::vec(node(size), most(size.nodes) / 4..most(size.nodes));
    let queues = prop::collection::vec(queue(size), 1..most(size.queues));
    let jobs = prop::collection::vec(job(size), 1..size.n_jobs);
    let alike = (nodes_alike(size), prop::collection::vec(node(size), 0..4));
    let nodes = prop_oneof![
        1 => nodes.prop_map(|nodes| nodes.concat()),
        1 => alike.prop_map(|(alike, others)| alike + &others.concat()),
    ];
    let mixed = (nodes, queues, jobs)
        .prop_map(|(nodes, queues, jobs)| nodes + &queues.concat() + &jobs.concat());
    let beside =
        if size.alike.0 < 30 { Just(String::new()).boxed() } else { nodes_alike(size).boxed() };
    let full = (beside, full(size), prop::collection::vec(job(size), 0..size.n_jobs / 2));
    let full = full.prop_map(|(beside, text, jobs)| beside + &text + &jobs.concat());
    // Every queue is there until it goes.
    let first: String = (0..size.queues).map(|queue| format!("queue q{queue}\n")).collect();
    let cluster = prop_oneof![3 => mixed, 2 => full];
    let cluster = cluster.prop_map(move |cluster| first.clone() + &cluster);
    let lines = prop::collection::vec(line(size), 0..size.lines);
    let reported = lines.prop_map(move |lines| [first_lines(size), lines].concat());
    let turns =
        prop::collection::vec(prop::collection::vec(step(size), 0..4), size.turns.0..size.turns.1);
    (choice(size.theme), flags(), cluster, reported, turns).prop_map(
        |(choice, flags, cluster, reported, turns)| Story {
            choice,
            flags,
            cluster,
            reported,
            turns,
        },
    )
}

/// Stories of one theme.
pub(super) fn stories_about(theme: Theme) -> impl Strategy<Value = Story> {
    prop_oneof![
        12 => stories_of(SMALL.about(theme)),
        6 => stories_of(MEDIUM.about(theme)),
        1 => stories_of(LARGE.about(theme)),
    ]
}

/// Of two hundred stories, so many wide ones and eight times as many large ones.
pub(super) fn stories(wide: u32) -> impl Strategy<Value = Story> {
    let about = |size: Size| {
        prop_oneof![
            8 => stories_of(size),
            2 => stories_of(size.about(Theme::Neighbours)),
            1 => stories_of(size.about(Theme::Volumes)),
            1 => stories_of(size.about(Theme::Devices)),
            2 => stories_of(size.about(Theme::Networks)),
            2 => stories_of(size.about(Theme::Groups)),
            2 => stories_of(size.about(Theme::Cards)),
            2 => stories_of(size.about(Theme::Loads)),
            2 => stories_of(size.about(Theme::Roles)),
            2 => stories_of(size.about(Theme::Numa)),
            2 => stories_of(size.about(Theme::Usages)),
        ]
    };
    let (large, medium) = (8 * wide, 24);
    let widely = prop_oneof![stories_of(WIDE), stories_of(WIDE.about(Theme::Neighbours))];
    prop_oneof![
        200 - wide - large - medium => about(SMALL),
        medium => about(MEDIUM),
        large => about(LARGE),
        wide => widely,
    ]
}
