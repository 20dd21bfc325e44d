//! The command line. Specification: answers.md 13 (ANS-86).

use std::path::{Path, PathBuf};

use clap::builder::{EnumValueParser, PathBufValueParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use serde_json::Value;
use vc_objects::what_if::flags::ChangeFlags;

use crate::connection::ConnectionWords;

const EXAMPLES: &str = "\
Examples:
  kubectl vc why job/train -n ml
  kubectl vc why -A
  kubectl vc line research
  kubectl vc what-if -f job.yaml -n ml
  kubectl vc what-if --add-nodes g1=2 --set-queue research.weight=4
  kubectl vc ui
  kubectl vc ui --html cluster.html
  kubectl vc why train --from cluster.yaml
  kubectl vc why -A --local";

/// Ask the scheduler why jobs wait, what would let them start, and who is before them.
#[derive(Parser)]
#[command(name = "kubectl vc", bin_name = "kubectl vc", version, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) verb: Verb,
    /// Form of the answer.
    #[arg(
        short,
        long,
        value_parser = EnumValueParser::<Output>::new().map(OutputFlag::Form),
        default_value = "text",
        global = true
    )]
    output: OutputFlag,
    /// Namespace of the job, or of the jobs that are listed; absent: that of the context.
    #[arg(short, long, value_name = "NAME", global = true)]
    pub(crate) namespace: Option<String>,
    /// Jobs of all namespaces.
    #[arg(short = 'A', long, global = true)]
    pub(crate) all_namespaces: bool,
    /// Kubeconfig; absent: $KUBECONFIG or ~/.kube/config.
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig.
    #[arg(long, value_name = "NAME", global = true)]
    context: Option<String>,
    /// Address of the scheduler's port for answers; absent: the API server is asked, which passes the question on.
    #[arg(long, value_name = "URL", global = true)]
    server: Option<String>,
    /// Service of the answers; if it may not be asked, a tunnel to the leader's pod in its namespace. Absent: the
    /// API server's group answers.volcano.sh, else volcano-system/vc-scheduler-answers, else one with its
    /// label there, else a tunnel to a pod there, else as with --local.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service, global = true)]
    pub(crate) service: Option<(String, String)>,
    /// ServiceAccount whose rights are used where the kubeconfig has a client certificate and no token;
    /// absent: that of the Service, with `-admin` behind its name.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service, global = true)]
    service_account: Option<(String, String)>,
    /// Print each way to the scheduler that was tried, and what came of it.
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Answer from files with objects of a cluster instead, `-` for standard input, or `why NAME` and
    /// `ui --html` from a bundle.
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) from: Vec<PathBuf>,
    /// List the objects of the cluster with the kubeconfig and answer from them, without a scheduler that
    /// answers.
    #[arg(long, conflicts_with_all = ["from", "server"], global = true)]
    pub(crate) local: bool,
    /// ConfigMap with the configuration of the scheduler, for --local; absent: volcano-system/vc-scheduler,
    /// else volcano-system/volcano-scheduler-configmap.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = service, global = true)]
    pub(crate) configmap: Option<(String, String)>,
    /// Configuration of the scheduler for --from and --local; absent: that of the chart, or the ConfigMap.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) scheduler_conf: Option<PathBuf>,
    #[command(flatten)]
    connection: ConnectionWords,
}

// Completion offers names for values that are called JOB, QUEUE or NODE. A docstring would be help.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Why a job or pod waits; without a name: one line for each job that waits.
    Why {
        /// [KIND/]NAME of a job, its PodGroup or a pod.
        #[arg(value_name = "JOB")]
        name: Option<String>,
        /// Exit with 3 if something waits.
        #[arg(long)]
        exit_code: bool,
        /// Go on, and print the answer again when something in it changes.
        #[arg(short, long, conflicts_with_all = ["exit_code", "from", "local"])]
        watch: bool,
    },
    /// Jobs that hold nodes, with the times at which they are expected to end.
    Runs {
        /// Only this queue.
        #[arg(long, value_name = "QUEUE")]
        queue: Option<String>,
    },
    /// Queues with what they hold, deserve and may hold.
    Queues {
        /// Only this queue.
        #[arg(value_name = "QUEUE")]
        name: Option<String>,
    },
    /// The jobs that wait in a queue, in their order.
    Line {
        /// Name of the queue.
        queue: String,
    },
    /// Nodes with what is free.
    Nodes {
        /// Only this node, with its jobs.
        #[arg(value_name = "NODE")]
        name: Option<String>,
    },
    /// HyperNodes with what is free on their nodes.
    Hypernodes,
    /// Sums over the cluster.
    Top {
        /// Go on, and print the sums again when one of them changes.
        #[arg(short, long, conflicts_with_all = ["from", "local", "once"])]
        watch: bool,
        /// Print the sums once; absent: on a terminal they are printed as with --watch.
        #[arg(long)]
        once: bool,
    },
    /// Jobs that held nodes lately, and evictions.
    Timeline {
        /// How far back: 90m, 2h, or a time like 2026-06-01T10:00:00Z.
        #[arg(long, value_name = "TIME", default_value = "1h")]
        since: String,
        /// Only this queue.
        #[arg(long, value_name = "QUEUE")]
        queue: Option<String>,
    },
    /// The last cycles that decided something or learned something new.
    Cycles {
        /// Number of cycles.
        #[arg(long, value_name = "N", default_value_t = 20)]
        last: usize,
    },
    /// Write what the scheduler was given lately into a file, for vcsim replay, with its last state as objects.
    Bundle {
        /// Cycles at least; absent: all that are kept.
        #[arg(long, value_name = "N")]
        cycles: Option<u64>,
        /// Numbers in place of names, so that the file can be shown to others. It decides the same.
        #[arg(long)]
        anonymize: bool,
        /// File to write, in place of the argument FILE; here it is not the form of an answer.
        // It stands in place of the flag of all verbs, because it has the same name in clap.
        #[arg(
            short,
            long,
            value_name = "FILE",
            value_parser = PathBufValueParser::new().map(OutputFlag::File),
            value_hint = ValueHint::AnyPath,
            conflicts_with = "file"
        )]
        output: Option<OutputFlag>,
        /// File to write, - for standard output; absent: bundle-CYCLE.tar.gz.
        file: Option<PathBuf>,
    },
    /// The page about the cluster, on this machine, with the rights of the kubeconfig.
    Ui {
        /// Port; 0: any that is free.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// Serve nothing, and write the page with its answers into this new file, - for standard output.
        /// It opens without a network.
        #[arg(long, value_name = "FILE", conflicts_with = "port")]
        html: Option<PathBuf>,
    },
    /// What would happen with other nodes, limits or settings, or if a job were submitted.
    ///
    /// Nothing is changed. Exits with 3 when a pod of an applied object gets no node.
    WhatIf(WhatIfWords),
}

impl Verb {
    /// True if the answer is of what a scheduler remembers.
    pub(crate) fn is_of_process(&self) -> bool {
        matches!(
            self,
            Self::Timeline { .. }
                | Self::Cycles { .. }
                | Self::Bundle { .. }
                | Self::Ui { html: None, .. }
        )
    }
}

#[derive(Args)]
pub(crate) struct WhatIfWords {
    /// A document WhatIf, or objects to apply; - is standard input.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) filename: Vec<PathBuf>,
    /// Another configuration of the scheduler.
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Set a field of a queue: research.weight=4, research.capability.cpu=20.
    #[arg(long, value_name = "QUEUE.FIELD=VALUE")]
    set_queue: Vec<String>,
    /// Add empty nodes like one that exists.
    #[arg(long, value_name = "NODE=COUNT")]
    add_nodes: Vec<String>,
    /// Remove a node; its pods have to go elsewhere.
    #[arg(long, value_name = "NODE")]
    drain: Vec<String>,
}

impl WhatIfWords {
    /// True if a file cannot be read again, such as standard input.
    fn reads_once(&self) -> bool {
        let is_regular = |path: &PathBuf| path.metadata().is_ok_and(|it| it.is_file());
        !self.filename.iter().chain(&self.conf).all(is_regular)
    }

    /// Returns the changes of the flags, each with its flag.
    ///
    /// # Errors
    /// A flag cannot be understood, or there is no change at all.
    pub(crate) fn changes(&self) -> Result<Vec<(String, Value)>, String> {
        let Self { conf, set_queue, add_nodes, drain, .. } = self;
        let flags = ChangeFlags { conf: conf.as_deref(), set_queue, add_nodes, drain };
        let changes = flags.changes()?;
        if changes.is_empty() && self.filename.is_empty() {
            let hint = "-f FILE, --add-nodes, --drain, --set-queue or --conf";
            return Err(format!("no change is given\nhint: {hint}"));
        }
        Ok(changes)
    }
}

/// Value of `-o`. One type for both, as clap hands the value of a flag of all verbs from verb to program.
#[derive(Clone, Debug)]
pub(crate) enum OutputFlag {
    /// Form of the answer.
    Form(Output),
    /// File to write, behind the verb `bundle`.
    File(PathBuf),
}

impl OutputFlag {
    /// Returns the file to write. Returns `None` for a form.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file),
            Self::Form(_) => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    /// As text; queues, nodes, HyperNodes, the list of jobs and the timeline with all columns, a job with its
    /// history.
    Wide,
    Json,
    Yaml,
}

fn service(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("write it like volcano-system/vc-scheduler-answers".to_owned()),
    }
}

impl Arguments {
    /// Returns the arguments, if their flags go together.
    ///
    /// # Errors
    /// They do not. The error is one of usage.
    pub(crate) fn check(self) -> Result<Self, clap::Error> {
        match self.connection.problem() {
            Some((kind, text)) => Err(Self::command().error(kind, text)),
            None => Ok(self),
        }
    }

    /// Returns how the scheduler is reached.
    pub(crate) fn access(&self) -> vc_kube::AnswersAccess {
        vc_kube::AnswersAccess {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            server: self.server.clone(),
            service: self.service.clone(),
            service_account: self.service_account.clone(),
            flags: self.connection.flags(),
            session: vc_kube::AnswersSession::default(),
        }
    }

    /// True if the user has named the scheduler.
    pub(crate) fn names_place(&self) -> bool {
        self.server.is_some() || self.service.is_some()
    }

    /// True if another scheduler may be asked the same question: its files can be read again.
    pub(crate) fn can_ask_again(&self) -> bool {
        !matches!(&self.verb, Verb::WhatIf(words) if words.reads_once())
    }

    /// True if the lists of the cluster may answer where no scheduler does.
    pub(crate) fn can_list(&self) -> bool {
        let needs_scheduler = self.is_watch() || self.verb.is_of_process();
        !self.names_place() && !needs_scheduler && self.can_ask_again()
    }

    /// Returns the form of the answer.
    pub(crate) fn form(&self) -> Output {
        match self.output {
            OutputFlag::Form(form) => form,
            OutputFlag::File(_) => Output::Text,
        }
    }

    /// True if the user wants the answer again when something in it changes.
    fn is_watch(&self) -> bool {
        matches!(self.verb, Verb::Why { watch: true, .. } | Verb::Top { watch: true, .. })
    }

    /// True if the answer is printed again when something in it changes: with `--watch`, and by `top` as a text on
    /// a terminal. Only with `--watch` does the user insist on a scheduler that can be asked again.
    pub(crate) fn is_repeated(&self, is_terminal: bool) -> bool {
        let is_top = matches!(self.verb, Verb::Top { once: false, .. });
        let is_text = matches!(self.form(), Output::Text | Output::Wide);
        self.is_watch() || (is_top && is_text && is_terminal)
    }

    pub(crate) fn wants_exit_code(&self) -> bool {
        matches!(self.verb, Verb::Why { exit_code: true, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Arguments {
        let words = std::iter::once("kubectl vc").chain(words.iter().copied());
        Arguments::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn ans_86_the_output_of_a_bundle_is_a_file() {
        let cases: [(&[&str], Option<&str>); 6] = [
            (&["bundle"], None),
            (&["bundle", "-o", "a.tar.gz"], Some("a.tar.gz")),
            (&["bundle", "--output=json"], Some("json")),
            (&["bundle", "-o", "-"], Some("-")),
            (&["-o", "json", "bundle"], None),
            (&["-o", "json", "bundle", "-o", "b"], Some("b")),
        ];
        for (words, expected) in cases {
            let Verb::Bundle { output, .. } = read(words).verb else { panic!("{words:?}") };
            let file = output.as_ref().and_then(OutputFlag::file);
            assert_eq!(file, expected.map(Path::new), "{words:?}");
        }
        for words in [&["queues", "-o", "yaml"][..], &["-oyaml", "queues"]] {
            assert_eq!(read(words).form(), Output::Yaml, "{words:?}");
        }
        assert_eq!(read(&["queues"]).form(), Output::Text);
        let both = Arguments::try_parse_from(["kubectl vc", "bundle", "a", "-o", "b"]);
        assert_eq!(both.err().map(|error| error.exit_code()), Some(2));
    }

    #[test]
    fn ans_86_top_is_repeated_on_a_terminal() {
        let cases: [(&[&str], bool, bool); 7] = [
            (&["top"], true, true),
            (&["top"], false, false),
            (&["top", "--once"], true, false),
            (&["top", "-o", "json"], true, false),
            (&["top", "-o", "wide"], true, true),
            (&["top", "--watch"], false, true),
            (&["queues"], true, false),
        ];
        for (words, is_terminal, expected) in cases {
            assert_eq!(read(words).is_repeated(is_terminal), expected, "{words:?}");
        }
        assert!(read(&["top"]).can_list() && !read(&["top", "--watch"]).can_list());
        assert!(Arguments::try_parse_from(["kubectl vc", "top", "--watch", "--once"]).is_err());
    }

    #[test]
    fn ans_86_the_command_line_is_sound() {
        Arguments::command().debug_assert();
        assert_eq!(service("a/b"), Ok(("a".to_owned(), "b".to_owned())));
        for text in ["a", "/b", "a/", ""] {
            assert!(service(text).is_err(), "{text:?}");
        }
    }
}
