//! Environment variables of core.md 1.2.

use std::path::PathBuf;

use vc_model::Division;

/// A variable for the documentation.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
}

const SOCKETS: Variable = Variable {
    name: "DEBUG_SOCKET_DIR",
    default: "/tmp/klog-socks",
    help: "directory of the socket `klog-klog.sock`, which answers \
        `GET /setlevel?level=5&duration=1m` and `GET /getlevel`",
};
const PANIC: Variable = Variable {
    name: "PANIC_ON_ERROR",
    default: "",
    help: "`true`: a failed internal assertion ends the process; else it is logged and counted",
};
const DIVISION: Variable = Variable {
    name: "MULTI_SCHEDULER_ENABLE",
    default: "",
    help: "`true`: several schedulers divide pods, pod groups and nodes by their names",
};
const OUR_NAME: Variable = Variable {
    name: "SCHEDULER_POD_NAME",
    default: "",
    help: "our name among several schedulers, `<base>-<ordinal>`",
};
const NUMBER: Variable =
    Variable { name: "SCHEDULER_NUM", default: "1", help: "number of schedulers" };

const POD_NAME: Variable = Variable {
    name: "POD_NAME",
    default: "",
    help: "name of our pod, which gets the label `scheduling.volcano.sh/answers` while it leads, with \
        `--enable-answers`",
};
const POD_NAMESPACE: Variable =
    Variable { name: "POD_NAMESPACE", default: "", help: "namespace of our pod" };

/// All that are read or known, in the order of the documentation.
pub(crate) const VARIABLES: &[Variable] = &[
    SOCKETS,
    PANIC,
    DIVISION,
    OUR_NAME,
    NUMBER,
    POD_NAME,
    POD_NAMESPACE,
    Variable {
        name: "TZ",
        default: "",
        help: "time zone of the daily windows of the plugin tdm, such as `Europe/Vienna` or \
            `CET-1CEST`; else that of `/etc/localtime`",
    },
    Variable {
        name: "BATCH_BIND_NUM",
        default: "1",
        help: "no effect: binds are sent as they are decided, some tens at a time",
    },
    Variable {
        name: "GOMEMLIMIT, GOMAXPROCS, GOGC",
        default: "",
        help: "no effect: they are about Go",
    },
];

/// The pod that this process runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPod {
    pub namespace: String,
    pub name: String,
}

/// What the environment asks for.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Where the log level socket is made.
    pub socket_dir: PathBuf,
    /// A failed internal assertion ends the process (C-03).
    pub fatal_assertions: bool,
    /// `MULTI_SCHEDULER_ENABLE` (core.md 4.4); `None`: all work is ours.
    pub division: Option<Division>,
    /// `None`: it is not said, or this is no pod.
    pub pod: Option<OwnPod>,
}

impl Environment {
    /// Of the process.
    pub fn of_process() -> Self {
        Self::read(|name| std::env::var(name).ok())
    }

    /// From what `value` answers for a name.
    pub fn read(value: impl Fn(&str) -> Option<String>) -> Self {
        let is_true = |variable: &Variable| value(variable.name).as_deref() == Some("true");
        let sockets = value(SOCKETS.name).filter(|text| !text.is_empty());
        let given = |variable: &Variable| value(variable.name).filter(|text| !text.is_empty());
        let pod = given(&POD_NAMESPACE).zip(given(&POD_NAME));
        Self {
            pod: pod.map(|(namespace, name)| OwnPod { namespace, name }),
            socket_dir: sockets.unwrap_or_else(|| SOCKETS.default.to_owned()).into(),
            fatal_assertions: is_true(&PANIC),
            division: is_true(&DIVISION).then(|| {
                let number = value(NUMBER.name).and_then(|text| text.parse().ok());
                Division::new(&value(OUR_NAME.name).unwrap_or_default(), number.unwrap_or(1))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c03_only_an_explicit_true_makes_assertions_fatal() {
        for (value, fatal) in [(None, false), (Some("false"), false), (Some("true"), true)] {
            let environment = Environment::read(|name| match name {
                "PANIC_ON_ERROR" => value.map(str::to_owned),
                _ => None,
            });
            assert_eq!(environment.fatal_assertions, fatal);
            assert_eq!(environment.socket_dir, PathBuf::from("/tmp/klog-socks"));
        }
        let environment = Environment::read(|_| Some("/x".to_owned()));
        assert_eq!(environment.socket_dir, PathBuf::from("/x"));
    }
}
