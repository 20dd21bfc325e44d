//! The arguments of `extender` and what they mean together.
//! Specification: plugins-jobs-queues.md 15.1.

use std::time::Duration;

use vc_conf::{Argument, ArgumentShape, DeclaredArgument, DurationRule, PluginOption, Warning};
use vc_framework::Points;
use vc_model::go_duration_micros;

pub(super) const ALL: &[&dyn DeclaredArgument] = &[
    &URL_PREFIX,
    &TIMEOUT,
    &IGNORABLE,
    &MANAGED_RESOURCES,
    &ExtenderHook::SessionOpen.argument(),
    &ExtenderHook::SessionClose.argument(),
    &ExtenderHook::Predicate.argument(),
    &ExtenderHook::Prioritize.argument(),
    &ExtenderHook::Preemptable.argument(),
    &ExtenderHook::Reclaimable.argument(),
    &ExtenderHook::QueueOverused.argument(),
    &ExtenderHook::JobEnqueueable.argument(),
    &ExtenderHook::JobEnqueued.argument(),
    &ExtenderHook::JobReady.argument(),
    &ExtenderHook::Allocate.argument(),
    &ExtenderHook::Deallocate.argument(),
];

const URL_PREFIX: Argument<&str> =
    Argument::new("extender.urlPrefix", "", "base URL of the service");
const TIMEOUT: Argument<DurationRule> = Argument::new(
    "extender.httpTimeout",
    DurationRule {
        parse: |value| value.as_str().and_then(go_duration_micros).filter(|&micros| 0 < micros),
        problem: "not a positive duration: {value}",
        remedy: "write a duration in quotes, such as \"500ms\"; until then the default 1s is in \
                 force",
    },
    "longest time of an exchange",
)
.shown_as("1s");
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);
const IGNORABLE: Argument<bool> =
    Argument::new("extender.ignorable", false, "go on when the service fails");
const MANAGED_RESOURCES: Argument<ArgumentShape> = Argument::new(
    "extender.managedResources",
    ArgumentShape::Names,
    "ask only about pods that name one of these",
)
.shown_as("empty");

/// A hook of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ExtenderHook {
    SessionOpen,
    SessionClose,
    Predicate,
    Prioritize,
    Preemptable,
    Reclaimable,
    QueueOverused,
    JobEnqueueable,
    JobEnqueued,
    JobReady,
    Allocate,
    Deallocate,
}

const N_HOOKS: usize = 12;

/// Key of the argument of each hook, its name for people, and the extension point that asks it, in
/// the order of [`ExtenderHook`].
const HOOKS: [(ExtenderHook, &str, &str, Points); N_HOOKS] = [
    (ExtenderHook::SessionOpen, "extender.onSessionOpenVerb", "onSessionOpen", Points::NONE),
    (ExtenderHook::SessionClose, "extender.onSessionCloseVerb", "onSessionClose", Points::NONE),
    (ExtenderHook::Predicate, "extender.predicateVerb", "predicate", Points::PREDICATE),
    (ExtenderHook::Prioritize, "extender.prioritizeVerb", "prioritize", Points::BATCH_NODE_ORDER),
    (ExtenderHook::Preemptable, "extender.preemptableVerb", "preemptable", Points::PREEMPTABLE),
    (ExtenderHook::Reclaimable, "extender.reclaimableVerb", "reclaimable", Points::RECLAIMABLE),
    (ExtenderHook::QueueOverused, "extender.queueOverusedVerb", "queueOverused", Points::OVERUSED),
    (
        ExtenderHook::JobEnqueueable,
        "extender.jobEnqueueableVerb",
        "jobEnqueueable",
        Points::JOB_ENQUEUEABLE,
    ),
    (ExtenderHook::JobEnqueued, "extender.jobEnqueuedVerb", "jobEnqueued", Points::JOB_ENQUEUED),
    (ExtenderHook::JobReady, "extender.jobReadyVerb", "jobReady", Points::JOB_READY),
    (ExtenderHook::Allocate, "extender.allocateFuncVerb", "allocateFunc", Points::EVENT_HANDLERS),
    (
        ExtenderHook::Deallocate,
        "extender.deallocateFuncVerb",
        "deallocateFunc",
        Points::EVENT_HANDLERS,
    ),
];

impl ExtenderHook {
    const fn argument(self) -> Argument<&'static str> {
        Argument::new(HOOKS[self as usize].1, "", "path of the hook; empty: not called")
    }

    /// Returns the name in the key of its argument.
    pub(super) fn name(self) -> &'static str {
        HOOKS[self as usize].2
    }
}

/// The arguments of a configuration.
#[derive(Debug)]
pub(super) struct ExtenderSettings {
    /// Base URL without user and password, for messages.
    pub(super) shown_url: String,
    pub(super) timeout: Duration,
    pub(super) is_ignorable: bool,
    /// Resources that make a pod one of interest. If it is empty, all pods are.
    pub(super) managed_resources: Vec<String>,
    /// Complete address by hook; empty: the hook is not called.
    urls: [String; N_HOOKS],
}

impl ExtenderSettings {
    pub(super) fn read(option: &PluginOption, warnings: &mut Vec<Warning>) -> Self {
        let arguments = &option.arguments;
        let prefix = URL_PREFIX.read(arguments, warnings);
        let base = prefix.trim_end_matches('/');
        let urls = HOOKS.map(|(hook, ..)| {
            let verb = hook.argument().read(arguments, warnings);
            if verb.is_empty() { verb } else { format!("{base}/{verb}") }
        });
        let has_hooks = urls.iter().any(|url| !url.is_empty());
        if let Some(problem) = url_problem(base).filter(|_| has_hooks) {
            let remedy = "write a URL such as http://extender.tools:8080; until then every request \
                          to the service fails";
            warnings.push(arguments.warning(URL_PREFIX.key, problem, remedy));
        }
        let micros = TIMEOUT.read(arguments, warnings).and_then(|micros| micros.try_into().ok());
        let names = MANAGED_RESOURCES.read(arguments, warnings);
        let listed = names.as_array().into_iter().flatten().filter_map(|name| name.as_str());
        let in_text = names.as_str().into_iter().flat_map(|text| text.split(','));
        let named = listed.chain(in_text).map(str::trim).filter(|name| !name.is_empty());
        Self {
            shown_url: without_user(base),
            timeout: micros.map_or(DEFAULT_TIMEOUT, Duration::from_micros),
            is_ignorable: IGNORABLE.read(arguments, warnings),
            managed_resources: named.map(str::to_owned).collect(),
            urls,
        }
    }

    /// Returns the address of a hook. Returns `None` if the hook is not called.
    pub(super) fn url(&self, hook: ExtenderHook) -> Option<&str> {
        Some(self.urls[hook as usize].as_str()).filter(|url| !url.is_empty())
    }

    /// Returns the extension points of the hooks that are called.
    pub(super) fn points(&self) -> Points {
        let called = HOOKS.iter().filter(|(hook, ..)| self.url(*hook).is_some());
        called.fold(Points::NONE, |points, (.., point)| points.and(*point))
    }
}

/// Returns why no request can be sent to the URL. Returns `None` if it looks sound.
fn url_problem(url: &str) -> Option<&'static str> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return Some("the URL of the service begins with neither http:// nor https://");
    };
    let host = rest.split('/').next().unwrap_or_default();
    if host.contains('@') {
        return Some("user and password in the URL are not sent");
    }
    if host.is_empty() || host.starts_with(':') {
        return Some("the URL of the service has no host");
    }
    let is_odd =
        |letter: char| letter.is_whitespace() || letter.is_control() || "?#\\".contains(letter);
    rest.contains(is_odd).then_some("the URL of the service has a space, a query or a fragment")
}

/// Returns the URL without user and password.
fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    match host.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{host}{path}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{HOOKS, url_problem, without_user};

    #[test]
    fn hooks_stand_at_their_places() {
        for (place, (hook, key, name, _)) in HOOKS.iter().enumerate() {
            assert_eq!((*hook as usize, *key), (place, &*format!("extender.{name}Verb")));
        }
    }

    #[test]
    fn urls_that_cannot_work() {
        for url in ["http://a", "https://a.b:8443/path", "http://[::1]:80"] {
            assert_eq!(url_problem(url), None, "{url}");
        }
        for (url, wanted) in [
            ("", "begins with neither"),
            ("a:8080", "begins with neither"),
            ("ftp://a", "begins with neither"),
            ("http://", "no host"),
            ("http://:80", "no host"),
            ("http://u:secret@a", "are not sent"),
            ("http://a/b c", "a space"),
            ("http://a?b", "a query"),
            ("http://a\nb", "a space"),
        ] {
            assert!(url_problem(url).is_some_and(|problem| problem.contains(wanted)), "{url}");
        }
    }

    #[test]
    fn messages_show_no_password() {
        assert_eq!(without_user("http://u:p@a:1/b@c"), "http://a:1/b@c");
        assert_eq!(without_user("http://a/b@c"), "http://a/b@c");
    }
}
