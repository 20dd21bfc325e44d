//! The command line of core.md 1.1, read as Go's pflag does (rust-ecosystem.md 9). A flag is one
//! row of [`TABLE`]; those that do nothing (yet) are accepted and named in the log when somebody
//! sets them.

mod address;
mod document;
pub(crate) mod gates;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{ArgAction, ArgMatches, Command};
use vc_conf::AllowMissing;
use vc_engine::Evaluator;
use vc_kube::{CyclePace, ScheduleTrigger, ServerAccess};
use vc_model::{Sharding, ShardingMode};

use address::is_loopback;
use gates::{ALL_ALPHA, GATES};
use table::{FlagEffect, FlagKind, FlagRow, TABLE};

pub use document::document;
pub use value::{go_duration, go_duration_text};

/// What was asked for.
#[derive(Debug)]
pub struct Flags {
    pub access: ServerAccess,
    pub pace: CyclePace,
    pub scheduler_names: Vec<String>,
    /// Empty: the built-in configuration.
    pub scheduler_conf: PathBuf,
    /// `--disable-default-scheduler-config`: a bad file ends the start.
    pub strict_conf: bool,
    /// `--allow-missing-plugins`
    pub allow_missing: AllowMissing,
    pub default_queue: String,
    /// Label and value.
    pub node_selector: Vec<(String, String)>,
    pub priority_class: bool,
    /// Whether CSIDrivers and CSIStorageCapacities are watched.
    pub csi_storage: bool,
    /// CSI drivers whose volumes are not counted.
    pub ignored_provisioners: Vec<String>,
    /// Gate and whether it is on, in order.
    pub feature_gates: Vec<(String, bool)>,
    /// A pod of ours without a PodGroup is a job of one task.
    pub bare_pods: bool,
    pub evaluator: Evaluator,
    /// `--scheduler-sharding-mode`, `--scheduler-sharding-name`.
    pub sharding: Sharding,
    pub plugins_dir: PathBuf,
    /// `None`: this process schedules without asking anybody.
    pub lease: Option<LeaseFlags>,
    /// `None`: no health port.
    pub health: Option<HealthFlags>,
    /// Of metrics and profiles; opened if one of the two is wanted.
    pub listen_address: String,
    pub metrics: bool,
    pub profiles: bool,
    /// TLS of metrics and profiles: a certificate and its key, and the CA of clients if there is one.
    /// `None`: plain HTTP.
    pub metrics_tls: Option<TlsFiles>,
    /// Metrics and profiles only for whom the API server lets get them.
    pub metrics_authorization: bool,
    /// `None`: nobody answers why jobs wait.
    pub answers: Option<AnswerFlags>,
    /// Cycles between two checks of all sums; 0: none.
    pub check_cycles: u64,
    /// `None`: no dumps.
    pub dump_dir: Option<PathBuf>,
    pub version: bool,
    /// klog's `-v`.
    pub verbosity: i64,
    pub log_format: LogFormat,
    lines: Vec<FlagLine>,
}

/// `--log-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// As klog.
    Text,
    /// One object a line.
    Json,
}

/// Leader election (core.md 1.4).
#[derive(Clone, Debug)]
pub struct LeaseFlags {
    pub namespace: String,
    pub name: String,
    pub lease: Duration,
    pub renew: Duration,
    pub retry: Duration,
}

/// The health port (core.md 1.8).
#[derive(Clone, Debug)]
pub struct HealthFlags {
    pub address: String,
    /// `None`: CA, certificate and key are not all given, plain HTTP.
    pub tls: Option<TlsFiles>,
}

/// The port for answers (answers.md 11).
#[derive(Clone, Debug)]
pub struct AnswerFlags {
    pub address: String,
    /// `None`: the process makes a certificate itself.
    pub tls: Option<TlsFiles>,
    /// False: plain HTTP, everybody may all.
    pub needs_token: bool,
    /// True if the front proxy of the API server is believed who asks.
    pub is_aggregated: bool,
    /// True if the page is served, too.
    pub has_page: bool,
    /// MiB of past inputs that are kept for bundles; 0: none.
    pub history_mib: usize,
}

/// Files of a server with TLS.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub clients: ClientCertificates,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What a server with TLS does with certificates of its clients. A client needs none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Clients are not asked for one.
    NotAsked,
    /// A certificate that this CA has not signed ends the handshake.
    OfAuthority(PathBuf),
    /// Any certificate is taken. Whoever believes one verifies it.
    Any,
}

/// A flag for the log.
#[derive(Debug)]
struct FlagLine {
    name: &'static str,
    value: String,
    is_default: bool,
    effect: FlagEffect,
}

impl Flags {
    /// The arguments after the program's name. Usage errors are printed by `exit`: code 2, help: 0.
    ///
    /// # Errors
    /// An unknown flag or a bad value.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::parse_with(command("vc-scheduler"), args).map(|(flags, _)| flags)
    }

    /// The flags, and the arguments that are none, as this command reads them.
    ///
    /// # Errors
    /// An unknown flag or a bad value.
    pub fn parse_with(
        command: Command,
        args: impl IntoIterator<Item = OsString>,
    ) -> Result<(Self, Vec<String>), clap::Error> {
        let matches = command.try_get_matches_from(args.into_iter().map(normalize))?;
        Ok((Self::read(&matches), words(&matches)))
    }

    fn read(of: &ArgMatches) -> Self {
        let trigger = match text(of, "schedule-trigger").as_str() {
            "period" => ScheduleTrigger::Period,
            _ => ScheduleTrigger::Change,
        };
        let (mut period, gather) = (time(of, "schedule-period"), time(of, "schedule-gather"));
        if trigger == ScheduleTrigger::Change {
            // Without a pause nothing would be gathered, and an idle scheduler would spin.
            period = period.max(gather).max(Duration::from_millis(1));
        }
        let int = |name| *of.get_one::<i64>(name).expect("has a default");
        Self {
            access: ServerAccess {
                master: text(of, "master"),
                kubeconfig: text(of, "kubeconfig"),
                qps: *of.get_one("kube-api-qps").expect("has a default"),
                burst: u32::try_from(int("kube-api-burst")).unwrap_or(0),
            },
            pace: CyclePace { trigger, period, gather },
            scheduler_names: list(of, "scheduler-name"),
            scheduler_conf: text(of, "scheduler-conf").into(),
            strict_conf: of.get_flag("disable-default-scheduler-config"),
            allow_missing: AllowMissing::of(texts(of, "allow-missing-plugins")),
            default_queue: text(of, "default-queue"),
            node_selector: list(of, "node-selector")
                .iter()
                .filter_map(|pair| label(pair))
                .collect(),
            priority_class: of.get_flag("priority-class"),
            csi_storage: of.get_flag("csi-storage"),
            ignored_provisioners: list(of, "ignored-provisioners"),
            feature_gates: list(of, "feature-gates").iter().map(|pair| value::gate(pair)).collect(),
            bare_pods: text(of, "bare-pods") == "schedule",
            evaluator: match text(of, "evaluator").as_str() {
                "plain" => Evaluator::Plain,
                _ => Evaluator::Fast,
            },
            sharding: Sharding {
                mode: match text(of, "scheduler-sharding-mode").as_str() {
                    "hard" => ShardingMode::Hard,
                    "soft" => ShardingMode::Soft,
                    _ => ShardingMode::None,
                },
                name: text(of, "scheduler-sharding-name").into(),
            },
            plugins_dir: text(of, "plugins-dir").into(),
            lease: of.get_flag("leader-elect").then(|| lease(of)),
            health: of.get_flag("enable-healthz").then(|| health(of)),
            listen_address: text(of, "listen-address"),
            metrics: of.get_flag("enable-metrics"),
            profiles: of.get_flag("enable-pprof"),
            metrics_tls: of.get_flag("metrics-tls").then(|| tls_files(of)),
            metrics_authorization: of.get_flag("metrics-authorization"),
            answers: of.get_flag("enable-answers").then(|| answers(of)),
            check_cycles: u64::try_from(int("cache-check-cycles")).unwrap_or(0),
            dump_dir: of.get_flag("cache-dumper").then(|| text(of, "cache-dump-dir").into()),
            version: of.get_flag("version"),
            verbosity: int("v"),
            log_format: match text(of, "log-format").as_str() {
                "json" => LogFormat::Json,
                _ => LogFormat::Text,
            },
            lines: TABLE.iter().map(|row| line(row, of)).collect(),
        }
    }

    /// What the values must be to each other (core.md 1.4); also what only makes sense to refuse at
    /// once (C-01).
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn check(&self) -> Result<(), String> {
        self.lease.as_ref().map_or(Ok(()), LeaseFlags::check)?;
        self.check_metrics()?;
        self.answers.as_ref().map_or(Ok(()), AnswerFlags::check)?;
        let is_go_plugin = |path: PathBuf| path.extension().is_some_and(|end| end == "so");
        let mut files = std::fs::read_dir(&self.plugins_dir).into_iter().flatten().flatten();
        match files.find(|file| is_go_plugin(file.path())) {
            None => Ok(()),
            Some(file) => Err(format!(
                "custom plugin {}: Go plugins cannot be loaded\nhint: empty --plugins-dir",
                file.path().display()
            )),
        }
    }

    /// A token must not be sent in the clear, and TLS needs its files.
    fn check_metrics(&self) -> Result<(), String> {
        if let Some(files) = &self.metrics_tls {
            let named =
                [("tls-cert-file", &files.certificate), ("tls-private-key-file", &files.key)];
            if let Some((flag, _)) = named.iter().find(|(_, file)| file.as_os_str().is_empty()) {
                return Err(format!("--metrics-tls: no --{flag}\nhint: give both PEM files"));
            }
        } else if self.metrics_authorization {
            let hint = "hint: add --metrics-tls, or tokens are sent in the clear";
            return Err(format!("--metrics-authorization without --metrics-tls\n{hint}"));
        }
        Ok(())
    }

    /// Every flag at verbosity 2 and up, and each that was set in vain.
    pub fn log(&self) {
        for line in &self.lines {
            tracing::info!(v = 2, "FLAG: --{}={:?}", line.name, line.value);
        }
        for line in self.lines.iter().filter(|line| !line.is_default) {
            match line.effect {
                FlagEffect::Built | FlagEffect::Hidden => {}
                FlagEffect::Never => tracing::info!("flag has no effect: --{}", line.name),
            }
        }
        if self.lines.iter().any(|line| line.name == DEPRECATED && !line.is_default) {
            let instead = "use --leader-elect-resource-namespace instead";
            tracing::warn!("Flag --{DEPRECATED} has been deprecated, {instead}");
        }
        for gate in self.vain_gates() {
            tracing::warn!("feature gate has no effect: {gate}");
        }
    }
}

impl Flags {
    /// The last word about a feature gate, if there is one.
    pub(crate) fn gate(&self, name: &str) -> Option<bool> {
        let is_alpha = GATES.iter().any(|gate| gate.name == name && gate.is_alpha);
        let of_all = || if is_alpha { self.given_gate(ALL_ALPHA) } else { None };
        self.given_gate(name).or_else(of_all)
    }

    fn given_gate(&self, name: &str) -> Option<bool> {
        let of_name = |(gate, on): &(String, bool)| (gate == name).then_some(*on);
        self.feature_gates.iter().rev().find_map(of_name)
    }

    /// Gates that were set and change nothing.
    fn vain_gates(&self) -> impl Iterator<Item = &str> {
        let given = self.feature_gates.iter().map(|(name, _)| name.as_str());
        given.filter(|name| !GATES.iter().any(|gate| gate.name == *name))
    }
}

impl AnswerFlags {
    /// What is done with certificates of clients.
    pub fn clients(&self) -> ClientCertificates {
        client_certificates(self.is_aggregated)
    }

    fn check(&self) -> Result<(), String> {
        let Self { address, tls, needs_token, is_aggregated, .. } = self;
        if !needs_token && !is_loopback(address) {
            let hint = "hint: --answers-address=127.0.0.1:11253, or leave out --answers-auth";
            return Err(format!(
                "--answers-auth=off needs a loopback address, not {address}\n{hint}"
            ));
        }
        if *is_aggregated && !needs_token {
            let hint = "hint: leave out one of the two";
            return Err(format!(
                "--answers-aggregated needs TLS, and --answers-auth=off is plain HTTP\n{hint}"
            ));
        }
        let is_missing = |file: &PathBuf| file.as_os_str().is_empty();
        if tls
            .as_ref()
            .is_some_and(|files| is_missing(&files.certificate) || is_missing(&files.key))
        {
            let hint =
                "hint: give --answers-tls-cert-file and --answers-tls-private-key-file, or none";
            return Err(format!("TLS of the answers: a certificate needs its key\n{hint}"));
        }
        Ok(())
    }
}

impl LeaseFlags {
    fn check(&self) -> Result<(), String> {
        let Self { lease, renew, retry, .. } = self;
        let hint = "hint: lease duration > renew deadline > 1.2 x retry period > 0";
        if lease <= renew {
            return Err(format!("leader election: lease {lease:?}, renew {renew:?}\n{hint}"));
        }
        if *renew <= retry.mul_f64(1.2) || retry.is_zero() {
            return Err(format!("leader election: renew {renew:?}, retry {retry:?}\n{hint}"));
        }
        for (word, value) in [("namespace", &self.namespace), ("name", &self.name)] {
            if value.is_empty() {
                let hint = format!("hint: give one with --leader-elect-resource-{word}");
                return Err(format!("leader election: the Lease has no {word}\n{hint}"));
            }
        }
        Ok(())
    }
}

const DEPRECATED: &str = "lock-object-namespace";

/// The source of our events (core.md 7.9).
pub fn component(scheduler_names: &[String]) -> String {
    match scheduler_names {
        [only] => only.clone(),
        _ => "volcano".to_owned(),
    }
}

/// Returns the command line: all flags, and words that are none.
pub fn command(name: &'static str) -> Command {
    let words = clap::Arg::new("words").num_args(0..).hide(true);
    let words = words.value_parser(ValueParser::os_string());
    let command = Command::new(name).args_override_self(true).disable_version_flag(true);
    command.about("A batch scheduler for Kubernetes").args(TABLE.iter().map(arg)).arg(words)
}

fn arg(row: &FlagRow) -> clap::Arg {
    let arg = clap::Arg::new(row.name).long(row.name).help(row.help).value_name(row.kind.word());
    let arg = match row.kind {
        FlagKind::Bool => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        FlagKind::NamesOrAll => {
            arg.num_args(0..=1).require_equals(true).default_missing_value(AllowMissing::ALL)
        }
        _ => arg.allow_hyphen_values(true),
    };
    let arg = match row.kind {
        FlagKind::Texts | FlagKind::NamesOrAll => arg.action(ArgAction::Append),
        FlagKind::Commas | FlagKind::Gates => arg.action(ArgAction::Append).value_delimiter(','),
        _ => arg.action(ArgAction::Set),
    };
    let arg = arg.value_parser(match row.kind {
        FlagKind::Bool => ValueParser::new(value::go_bool),
        FlagKind::Int => ValueParser::new(value::go_int),
        FlagKind::Float => clap::value_parser!(f64).into(),
        FlagKind::Time => ValueParser::new(value::go_duration),
        FlagKind::Choice(words) => PossibleValuesParser::new(words.split('|')).into(),
        FlagKind::Gates => ValueParser::new(value::gate_text),
        FlagKind::Text | FlagKind::Texts | FlagKind::Commas | FlagKind::NamesOrAll => {
            ValueParser::string()
        }
    });
    let arg = if row.name == "v" { arg.short('v') } else { arg };
    let arg = arg.hide(row.effect == FlagEffect::Hidden);
    match row.default {
        "" if row.kind.is_list() => arg,
        default => arg.default_value(default),
    }
}

/// Arguments that are no flags. What a shell would have taken is none: Volcano's chart passes `2>&1`.
fn words(of: &ArgMatches) -> Vec<String> {
    let all = of.get_many::<OsString>("words").into_iter().flatten();
    let words = all.map(|word| word.to_string_lossy().into_owned());
    words.filter(|word| !word.contains(['<', '>', '|', '&']) && !word.is_empty()).collect()
}

/// pflag treats `_` and `-` alike inside a flag's name, not inside its value.
fn normalize(arg: OsString) -> OsString {
    match arg.to_str() {
        Some(text) if text.starts_with("--") => {
            let (name, value) = text.split_at(text.find('=').unwrap_or(text.len()));
            format!("{}{value}", name.replace('_', "-")).into()
        }
        _ => arg,
    }
}

fn text(of: &ArgMatches, name: &str) -> String {
    of.get_one::<String>(name).cloned().unwrap_or_default()
}

fn int(of: &ArgMatches, name: &str) -> i64 {
    *of.get_one(name).expect("has a default")
}

fn time(of: &ArgMatches, name: &str) -> Duration {
    *of.get_one(name).expect("has a default")
}

fn lease(of: &ArgMatches) -> LeaseFlags {
    let old = text(of, DEPRECATED);
    let namespace = if old.is_empty() { text(of, "leader-elect-resource-namespace") } else { old };
    LeaseFlags {
        namespace,
        name: text(of, "leader-elect-resource-name"),
        lease: time(of, "leader-elect-lease-duration"),
        renew: time(of, "leader-elect-renew-deadline"),
        retry: time(of, "leader-elect-retry-period"),
    }
}

fn health(of: &ArgMatches) -> HealthFlags {
    let files = tls_files(of);
    let all = matches!(files.clients, ClientCertificates::OfAuthority(_))
        && [&files.certificate, &files.key].iter().all(|file| !file.as_os_str().is_empty());
    HealthFlags { address: text(of, "healthz-address"), tls: all.then_some(files) }
}

fn answers(of: &ArgMatches) -> AnswerFlags {
    let [certificate, key] = ["answers-tls-cert-file", "answers-tls-private-key-file"]
        .map(|name| PathBuf::from(text(of, name)));
    let is_given = [&certificate, &key].iter().any(|file| !file.as_os_str().is_empty());
    let is_aggregated = of.get_flag("answers-aggregated");
    let clients = client_certificates(is_aggregated);
    AnswerFlags {
        address: text(of, "answers-address"),
        tls: is_given.then_some(TlsFiles { clients, certificate, key }),
        needs_token: text(of, "answers-auth") == "token",
        is_aggregated,
        has_page: of.get_flag("answers-ui"),
        history_mib: usize::try_from(int(of, "answers-history-mib")).unwrap_or(0),
    }
}

fn texts<'a>(of: &'a ArgMatches, name: &str) -> impl Iterator<Item = &'a str> {
    of.get_many::<String>(name).into_iter().flatten().map(String::as_str)
}

/// The files that are named; a path that is not is empty.
fn tls_files(of: &ArgMatches) -> TlsFiles {
    let [authority, certificate, key] = ["ca-cert-file", "tls-cert-file", "tls-private-key-file"]
        .map(|name| PathBuf::from(text(of, name)));
    let clients = match authority.as_os_str().is_empty() {
        true => ClientCertificates::NotAsked,
        false => ClientCertificates::OfAuthority(authority),
    };
    TlsFiles { clients, certificate, key }
}

/// Certificates of clients of the answers. The front proxy shows one, others may have one of any CA.
fn client_certificates(is_aggregated: bool) -> ClientCertificates {
    match is_aggregated {
        true => ClientCertificates::Any,
        false => ClientCertificates::NotAsked,
    }
}

fn list(of: &ArgMatches, name: &str) -> Vec<String> {
    texts(of, name).map(str::to_owned).collect()
}

/// `label:value`; entries without a value are ignored (core.md 4.3).
fn label(pair: &str) -> Option<(String, String)> {
    let (label, value) = pair.split_once(':')?;
    let (label, value) = (label.trim(), value.trim());
    (!value.is_empty()).then(|| (label.to_owned(), value.to_owned()))
}

fn line(row: &FlagRow, of: &ArgMatches) -> FlagLine {
    let raw = of.get_raw(row.name).into_iter().flatten();
    let value = raw.map(|part| part.to_string_lossy()).collect::<Vec<_>>().join(",");
    let value = if row.kind.is_list() { format!("[{value}]") } else { value };
    let default =
        if row.kind.is_list() { format!("[{}]", row.default) } else { row.default.into() };
    let is_default = value == default;
    FlagLine { name: row.name, value, is_default, effect: row.effect }
}
