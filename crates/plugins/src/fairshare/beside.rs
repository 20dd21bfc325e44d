//! What an entry of `fairshare` means beside the other plugins of a configuration.
//! Specification: fair-share.md 4 (FS-32), 5 (FS-44), 8, 12, 16.

use vc_conf::{EntryFinding, PluginOption, Switch, Tier};

use super::arguments::{FairshareArguments, K_VALUE, PREEMPT, QUEUE_ORDER};

/// Plugins that order queues.
const QUEUE_ORDERS: [&str; 3] = ["proportion", "capacity", "cohort"];

/// Returns what is wrong with the entry, given all tiers.
pub(super) fn check(entry: &PluginOption, tiers: &[Tier]) -> Vec<EntryFinding> {
    let arguments = FairshareArguments::read(&entry.arguments, &mut Vec::new());
    let all: Vec<&PluginOption> = tiers.iter().flat_map(|tier| &tier.plugins).collect();
    let is_own = |plugin: &&PluginOption| plugin.name == entry.name;
    if 1 < all.iter().filter(|plugin| is_own(plugin)).count() {
        let problem = format!("plugin \"{}\" is configured twice", entry.name);
        return vec![EntryFinding::error("", problem, "keep one of the two entries")];
    }
    let place = all.iter().position(is_own).unwrap_or_default();
    let (before, after) = (&all[..place], all.get(place + 1..).unwrap_or_default());
    let mut findings: Vec<EntryFinding> = beside_cohort(&arguments, &all).collect();
    if arguments.preempt.is_some() && arguments.entry_horizon_micros == 0 {
        let problem = "fairshare.preempt needs fairshare.entryHorizon above 0s";
        let remedy = "remove fairshare.entryHorizon, which is 5m then, or set fairshare.preempt to \
            false";
        findings.push(EntryFinding::error(PREEMPT.key, problem, remedy));
    }
    findings.extend(beside_proportion(entry, &arguments, tiers));
    findings.extend(job_orders(entry, before, after));
    if arguments.has_queue_order && entry.switches.on(Switch::QueueOrder) {
        findings.extend(queue_orders(before));
    }
    findings
}

/// FS-71: cohort alone decides between queues.
fn beside_cohort<'a>(
    arguments: &FairshareArguments,
    all: &[&PluginOption],
) -> impl Iterator<Item = EntryFinding> + use<'a> {
    let has_cohort = all.iter().any(|plugin| plugin.name == "cohort");
    let deciding = [
        (QUEUE_ORDER.key, arguments.has_queue_order),
        (K_VALUE.key, arguments.shares.is_some()),
        (PREEMPT.key, arguments.preempt.is_some()),
    ];
    deciding.into_iter().filter(move |(_, is_on)| has_cohort && *is_on).map(|(key, _)| {
        let problem = format!(
            "plugins \"cohort\" and \"fairshare\" ({key}) both decide between queues; keep one of them"
        );
        EntryFinding::error(key, problem, format!("remove {key}, or the plugin cohort"))
    })
}

/// FS-50, FS-54: proportion divides the cluster, and pods that it lets go are spared in its tier.
fn beside_proportion(
    entry: &PluginOption,
    arguments: &FairshareArguments,
    tiers: &[Tier],
) -> Vec<EntryFinding> {
    let has = |tier: &Tier, name: &str| tier.plugins.iter().any(|plugin| plugin.name == name);
    let Some(of_proportion) = tiers.iter().find(|tier| has(tier, "proportion")) else {
        let problem = "fairshare.kValue has no effect without the plugin proportion";
        let remedy = "add proportion, or remove fairshare.kValue";
        let finding = || EntryFinding::warning(K_VALUE.key, problem, remedy);
        return arguments.shares.map(|_| finding()).into_iter().collect();
    };
    let votes = arguments.shares.is_some() && entry.switches.on(Switch::Reclaimable);
    if !votes || has(of_proportion, &entry.name) {
        return Vec::new();
    }
    let problem = "fairshare spares pods that have just started in its own tier alone, and \
        proportion, which reclaims, is in another one";
    let remedy = "move fairshare into the tier of proportion, or give it enableReclaimable: false";
    vec![EntryFinding::warning("", problem, remedy)]
}

/// FS-32: orders of earlier plugins win.
fn job_orders(
    entry: &PluginOption,
    before: &[&PluginOption],
    after: &[&PluginOption],
) -> Vec<EntryFinding> {
    let has = |plugins: &[&PluginOption], name: &str| {
        let orders = |plugin: &&&PluginOption| plugin.switches.on(Switch::JobOrder);
        plugins.iter().filter(orders).any(|plugin| plugin.name == name)
    };
    let mut findings = Vec::new();
    if !entry.switches.on(Switch::JobOrder) {
        return findings;
    }
    if has(before, "drf") {
        let problem =
            "drf stands before fairshare and orders almost all jobs, so that usage hardly counts";
        let remedy = "list fairshare before drf, or give drf enableJobOrder: false";
        findings.push(EntryFinding::warning("", problem, remedy));
    }
    if has(after, "priority") {
        let problem = "priority stands behind fairshare: usage counts more than priority classes";
        let remedy = "list priority before fairshare";
        findings.push(EntryFinding::warning("", problem, remedy));
    }
    findings
}

/// FS-44: the same for queues.
fn queue_orders(before: &[&PluginOption]) -> Vec<EntryFinding> {
    let orders = |plugin: &&&PluginOption| {
        let is_drf = plugin.name == "drf" && plugin.switches.on(Switch::Hierarchy);
        plugin.switches.on(Switch::QueueOrder)
            && (is_drf || QUEUE_ORDERS.contains(&plugin.name.as_str()))
    };
    let finding = |plugin: &&PluginOption| {
        let name = &plugin.name;
        let problem = format!("{name} stands before fairshare and orders queues first");
        let remedy = format!("list fairshare before {name}");
        EntryFinding::warning(QUEUE_ORDER.key, problem, remedy)
    };
    before.iter().filter(orders).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use vc_conf::{ConfError, KnownNames, PluginDeclaration};

    fn parsed(plugins: &str) -> Result<Vec<String>, ConfError> {
        let declared: Vec<PluginDeclaration> =
            crate::ALL.iter().map(|entry| entry.declaration).collect();
        let known = KnownNames { plugins: &declared, not_built: &[], actions: &["allocate"] };
        let text = format!("actions: allocate\ntiers:\n- plugins: [{plugins}]\n");
        let loaded = vc_conf::parse("test.conf", &text, &known)?;
        Ok(loaded.warnings.into_iter().map(|warning| warning.message).collect())
    }

    fn fairshare(arguments: &str) -> String {
        format!("{{name: fairshare, arguments: {{{arguments}}}}}")
    }

    #[test]
    fn fs_warn_drf_before() {
        let entry = fairshare("fairshare.resourceKey: cpu");
        for (plugins, warning) in [
            (format!("{{name: priority}}, {entry}, {{name: drf}}"), None),
            (format!("{{name: drf}}, {entry}"), Some("drf stands before fairshare")),
            (format!("{{name: drf, enableJobOrder: false}}, {entry}"), None),
            (format!("{entry}, {{name: priority}}"), Some("priority stands behind fairshare")),
            (format!("{{name: proportion}}, {entry}"), None),
        ] {
            let warnings = parsed(&plugins).expect("a configuration");
            assert_eq!(warnings.len(), warning.iter().count(), "{plugins}: {warnings:?}");
            let found = warnings.iter().zip(warning).all(|(text, part)| text.contains(part));
            assert!(found, "{plugins}: {warnings:?}");
        }
    }

    #[test]
    fn fs_warn_order() {
        let entry = fairshare("fairshare.queueOrder: true");
        for (plugins, n_warnings) in [
            (format!("{entry}, {{name: proportion}}"), 0),
            (format!("{{name: proportion}}, {entry}"), 1),
            (format!("{{name: capacity}}, {entry}"), 1),
            (format!("{{name: proportion, enableQueueOrder: false}}, {entry}"), 0),
            (format!("{{name: drf, enableHierarchy: true, enableJobOrder: false}}, {entry}"), 1),
        ] {
            let warnings = parsed(&plugins).expect("a configuration");
            assert_eq!(warnings.len(), n_warnings, "{plugins}: {warnings:?}");
        }
    }

    #[test]
    fn fs_54_warns_of_another_tier_than_that_of_proportion() {
        let entry = fairshare("fairshare.kValue: 1");
        let tier = |plugins: &str| format!("{plugins}]\n- plugins: [");
        for (plugins, warning) in [
            (format!("{entry}, {{name: proportion}}"), None),
            (format!("{}{{name: proportion}}", tier(&entry)), Some("in another one")),
            (entry, Some("fairshare.kValue has no effect without the plugin proportion")),
        ] {
            let warnings = parsed(&plugins).expect("a configuration");
            assert_eq!(warnings.len(), warning.iter().count(), "{plugins}: {warnings:?}");
            let found = warnings.iter().zip(warning).all(|(text, part)| text.contains(part));
            assert!(found, "{plugins}: {warnings:?}");
        }
    }

    #[test]
    fn fs_bad_beside_others() {
        let cohort = "{name: cohort}, ";
        for (before, arguments, problem) in [
            ("", "fairshare.preempt: true, fairshare.entryHorizon: 0s", "above 0s"),
            (cohort, "fairshare.preempt: true", "\"fairshare\" (fairshare.preempt) both decide"),
            (cohort, "fairshare.queueOrder: true", "\"fairshare\" (fairshare.queueOrder) both"),
            (cohort, "fairshare.kValue: 1", "\"fairshare\" (fairshare.kValue) both"),
            ("{name: fairshare}, ", "", "plugin \"fairshare\" is configured twice"),
        ] {
            let error = parsed(&format!("{before}{}", fairshare(arguments))).expect_err(problem);
            assert!(error.problem.contains(problem), "{error}");
        }
        assert!(parsed(&format!("{cohort}{}", fairshare(""))).is_ok());
    }
}
