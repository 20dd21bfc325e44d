//! Every flag, by name: kind of value, default, whether it does something, help.

/// How a value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlagKind {
    Bool,
    Int,
    Float,
    Time,
    Text,
    /// Repeatable, not split.
    Texts,
    /// Repeatable, split at commas.
    Commas,
    /// As `Commas`; without a value it means all of them.
    NamesOrAll,
    /// As `Commas`, of `Name=true`.
    Gates,
    /// One of these words, which are separated by `|`.
    Choice(&'static str),
}

impl FlagKind {
    pub(super) fn is_list(self) -> bool {
        matches!(self, Self::Texts | Self::Commas | Self::NamesOrAll | Self::Gates)
    }

    /// Placeholder in the usage.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Time => "duration",
            Self::Text | Self::Texts => "string",
            Self::Commas | Self::NamesOrAll => "strings",
            Self::Gates => "mapStringBool",
            Self::Choice(words) => words,
        }
    }
}

/// What setting a flag does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FlagEffect {
    Built,
    /// It is about Go, klog or sampling, which are not here.
    Never,
    /// For tests of the scheduler itself: not in `--help`.
    Hidden,
}

/// A flag.
#[derive(Debug)]
pub(super) struct FlagRow {
    pub(super) name: &'static str,
    pub(super) kind: FlagKind,
    pub(super) default: &'static str,
    pub(super) effect: FlagEffect,
    pub(super) help: &'static str,
}

const fn row(
    name: &'static str,
    kind: FlagKind,
    default: &'static str,
    effect: FlagEffect,
    help: &'static str,
) -> FlagRow {
    FlagRow { name, kind, default, effect, help }
}

use FlagEffect::{Built, Hidden, Never};
use FlagKind::{Bool, Choice, Commas, Float, Gates, Int, NamesOrAll, Text, Texts, Time};

#[rustfmt::skip] // a table is read by its rows
pub(super) const TABLE: &[FlagRow] = &[
    row("add-dir-header", Bool, "false", Never, "klog"),
    row("allow-missing-plugins", NamesOrAll, "", Built,
        "what the configuration may name though this version lacks it; without names: everything"),
    row("alsologtostderr", Bool, "false", Never, "klog"),
    row("answers-address", Text, ":11253", Built, "address of the answers"),
    row("answers-aggregated", Bool, "false", Built,
        "take the user from the headers of the API server's front proxy, for an APIService of the answers"),
    row("answers-auth", Choice("token|off"), "token", Built,
        "off: plain HTTP, everybody may all; only on a loopback address"),
    row("answers-history-mib", Int, "64", Built,
        "MiB of what the scheduler was given lately, kept for bundles; 0: none"),
    row("answers-tls-cert-file", Text, "", Built,
        "certificate of the answers; without it the process makes one itself"),
    row("answers-tls-private-key-file", Text, "", Built, "key of the answers"),
    row("answers-ui", Bool, "true", Built, "serve the page about the answers, below /ui/"),
    row("bare-pods", Choice("ignore|schedule"), "ignore", Built,
        "schedule: a pod of ours without a PodGroup is a job of one task"),
    row("ca-cert-file", Text, "", Built, "CA of the clients of the health port and of metrics"),
    row("cache-check-cycles", Int, "3600", Built,
        "after so many cycles all sums of the cache are computed anew and compared; 0: never"),
    row("cache-dump-dir", Text, "/tmp", Built, "where SIGUSR1 writes"),
    row("cache-dumper", Bool, "true", Built, "dump the cache on SIGUSR1 (file) and SIGUSR2 (log)"),
    row("csi-storage", Bool, "true", Built, "watch CSIDriver and CSIStorageCapacity"),
    row("default-queue", Text, "default", Built, "queue of a pod group that names none"),
    row("disable-default-scheduler-config", Bool, "false", Built, "a bad file ends the start"),
    row("enable-answers", Bool, "false", Built,
        "answer over HTTP why jobs wait, from a copy of the state that follows every change"),
    row("enable-healthz", Bool, "false", Built, "serve /healthz, /livez and /readyz"),
    row("enable-metrics", Bool, "false", Built, "serve /metrics"),
    row("enable-pprof", Bool, "false", Built, "serve /debug/pprof"),
    row("evaluator", Choice("plain|fast"), "fast", Hidden,
        "how nodes are found; the decisions are the same"),
    row("feature-gates", Gates, "", Built, "gates as A=true,B=false"),
    row("gate-removal-worker-num", Int, "5", Never, "workers that remove scheduling gates"),
    row("healthz-address", Text, ":11251", Built, "address of /healthz, /livez and /readyz"),
    row("ignored-provisioners", Commas, "", Built, "CSI drivers whose volumes are not counted"),
    row("kube-api-burst", Int, "2000", Built, "burst of each client"),
    row("kube-api-qps", Float, "2000", Built, "requests per second of each client"),
    row("kubeconfig", Text, "", Built, "path of a kubeconfig; with an empty --master: in-cluster"),
    row("leader-elect", Bool, "true", Built, "schedule only while holding the Lease"),
    row("leader-elect-lease-duration", Time, "15s", Built, "how long a Lease is respected"),
    row("leader-elect-renew-deadline", Time, "10s", Built, "when a leader gives up"),
    row("leader-elect-resource-lock", Text, "leases", Never, "a Lease is always used"),
    row("leader-elect-resource-name", Text, "volcano", Built, "name of the Lease"),
    row("leader-elect-resource-namespace", Text, "volcano-system", Built, "namespace of the Lease"),
    row("leader-elect-retry-period", Time, "2s", Built, "pause between two attempts"),
    row("legacy-stderr-threshold-behavior", Bool, "false", Never, "klog"),
    row("listen-address", Text, ":8080", Built, "address of /metrics and /debug/pprof"),
    row("lock-object-namespace", Text, "", Built,
        "deprecated: --leader-elect-resource-namespace, which it overrides"),
    row("log-backtrace-at", Text, ":0", Never, "klog"),
    row("log-dir", Text, "", Never, "klog"),
    row("log-file", Text, "", Never, "klog"),
    row("log-file-max-size", Int, "1800", Never, "klog"),
    row("log-flush-frequency", Time, "5s", Never, "klog"),
    row("log-format", Choice("text|json"), "text", Built, "lines as klog writes them, or JSON"),
    row("logtostderr", Bool, "true", Never, "klog"),
    row("master", Text, "", Built, "address of the API server; overrides the kubeconfig's"),
    row("metrics-authorization", Bool, "false", Built,
        "answer /metrics and /debug/pprof only to whom the API server lets get them; needs --metrics-tls"),
    row("metrics-tls", Bool, "false", Built,
        "serve /metrics and /debug/pprof over TLS, with --tls-cert-file and --tls-private-key-file"),
    row("minimum-feasible-nodes", Int, "100", Never, "all nodes are always considered"),
    row("minimum-percentage-nodes-to-find", Int, "5", Never, "all nodes are always considered"),
    row("node-selector", Commas, "", Built, "only nodes with one of these label:value"),
    row("node-worker-threads", Int, "20", Never, "workers of the node queue"),
    row("one-output", Bool, "false", Never, "klog"),
    row("percentage-nodes-to-find", Int, "0", Never, "all nodes are always considered"),
    row("plugins-dir", Text, "", Built, "refused when it holds Go plugins"),
    row("priority-class", Bool, "true", Built, "false: every job has priority 0"),
    row("resource-sync-timeout", Time, "60s", Never,
        "initial objects are in effect as soon as they are listed"),
    row("resync-period", Time, "0s", Never, "watches are not repeated"),
    row("schedule-gather", Time, "10ms", Built,
        "how long changes are gathered before a cycle; 100ms if it can wait, or behind many binds"),
    row("schedule-period", Time, "1s", Built, "longest pause between two cycles"),
    row("schedule-trigger", Choice("change|period"), "change", Built, "what starts a cycle"),
    row("scheduler-conf", Text, "", Built, "path of the configuration file"),
    row("scheduler-name", Texts, "volcano", Built, "schedulerName of our pods"),
    row("scheduler-sharding-mode", Text, "none", Built, "none, hard or soft"),
    row("scheduler-sharding-name", Text, "volcano", Built, "name of our NodeShard"),
    row("skip-headers", Bool, "false", Never, "klog"),
    row("skip-log-headers", Bool, "false", Never, "klog"),
    row("stderrthreshold", Text, "INFO", Never, "klog"),
    row("tls-cert-file", Text, "", Built, "certificate of the health port and of metrics"),
    row("tls-private-key-file", Text, "", Built, "key of the health port and of metrics"),
    row("v", Int, "0", Built, "verbosity of the log"),
    row("version", Bool, "false", Built, "print the version"),
    row("vmodule", Commas, "", Never, "klog"),
];
