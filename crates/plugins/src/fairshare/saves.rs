//! Usage that survives a restart: when it is saved, and how a new process goes on from it.
//! Specification: fair-share.md 11.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use vc_conf::Config;
use vc_framework::{Effect, SessionView};
use vc_model::{ObjectKey, SavedAccount, SavedUsage, SavedUsages, UsageScale};

use super::arguments::FairshareArguments;
use super::decay::Decay;
use super::ledger::{Ledger, Usage};
use super::shares::RestoredAt;

/// Where and how often usage is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SaveRule {
    pub(super) config_map: ObjectKey,
    pub(super) interval_micros: i64,
}

/// The ConfigMap in which a configuration keeps the usage of `fairshare`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageConfigMap(pub ObjectKey);

impl UsageConfigMap {
    /// Returns the ConfigMap. Returns `None` if the configuration keeps no usage.
    pub fn of(config: &Config) -> Option<Self> {
        let mut options = config.tiers.iter().flat_map(|tier| &tier.plugins);
        let option = options.find(|option| option.name == super::ENTRY.name())?;
        let arguments = FairshareArguments::read(&option.arguments, &mut Vec::new());
        arguments.save.map(|save| Self(save.config_map))
    }
}

/// What was saved of a ledger.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct SaveLog {
    /// True if no usage has changed since the last save.
    pub(super) is_saved: bool,
    /// Time of the last save, in microseconds since 1970. `None`: there was none.
    at_micros: Option<i64>,
    /// Number of failed saves that are known.
    n_failed: u64,
    /// True if nothing may be saved, because what an earlier process has saved could not be read yet.
    #[serde(default)]
    is_held: bool,
}

impl SaveLog {
    /// Returns the time when a save is due. Returns `None` if nothing has changed since the last, or nothing may be
    /// saved.
    pub(super) fn due_micros(&self, rule: &SaveRule) -> Option<i64> {
        let due = |at: i64| at.saturating_add(rule.interval_micros);
        (!self.is_saved && !self.is_held).then(|| self.at_micros.map_or(i64::MIN, due))
    }

    /// Takes note of saves that failed, which are repeated after the interval, and of a usage that could not be read.
    pub(super) fn follow(&mut self, usages: &SavedUsages) {
        self.is_saved &= usages.n_failed_saves() == self.n_failed;
        self.n_failed = usages.n_failed_saves();
        self.is_held = usages.is_unread();
    }

    /// A clock that was set back does not put a save off.
    pub(super) fn set_back(&mut self, now: i64) {
        self.at_micros = self.at_micros.map(|at| at.min(now));
    }
}

/// Returns the write of the usage if it is due. `is_last`: no later cycle could save it.
pub(super) fn save(
    ledger: &mut Ledger,
    arguments: &FairshareArguments,
    now: i64,
    is_last: bool,
) -> Option<Effect> {
    let rule = arguments.save.as_ref()?;
    ledger.note_unsaved();
    ledger.saves.due_micros(rule).filter(|&due| is_last || due <= now)?;
    ledger.saves.is_saved = true;
    ledger.saves.at_micros = Some(now);
    ledger.note_saved();
    let usage = Arc::new(saved(ledger, arguments, now));
    Some(Effect::SaveUsage { config_map: rule.config_map.clone(), usage })
}

fn saved(ledger: &Ledger, arguments: &FairshareArguments, now: i64) -> SavedUsage {
    let decay = ledger.decay;
    let account = |account: &super::Account| SavedAccount {
        queue: account.queue.clone(),
        account: account.name.clone(),
        closed: account.usage.closed,
        rate: account.usage.rate,
        decayed_micros: decay.decayed_micros(account.usage.at(ledger.now_weight()), now),
    };
    let used = ledger.accounts().filter(|account| account.usage != Usage::default());
    let mut accounts: Vec<SavedAccount> = used.map(account).collect();
    accounts.sort_by(|l, r| (&l.queue, &l.account).cmp(&(&r.queue, &r.account)));
    let scale = UsageScale {
        half_life_micros: decay.half_life,
        origin_micros: decay.origin,
        charge: arguments.charge_text().into(),
    };
    let shares = ledger.shares.saved();
    SavedUsage { time_micros: now, scale: Some(scale), accounts, shares }
}

/// True if the usage was charged for what is charged now.
pub(super) fn is_charged_by(saved: &SavedUsage, arguments: &FairshareArguments) -> bool {
    saved.scale.as_ref().is_none_or(|scale| *scale.charge == *arguments.charge_text())
}

/// Returns a ledger with the usage of an earlier process, and the time from which running tasks are
/// to be charged.
///
/// # Errors
/// Something else was charged then: a warning.
pub(super) fn restored(
    view: SessionView<'_>,
    saved: &SavedUsage,
    arguments: &FairshareArguments,
) -> Result<(Ledger, i64), String> {
    let now = view.now_micros();
    let charge = arguments.charge_text();
    if let Some(scale) = &saved.scale
        && !is_charged_by(saved, arguments)
    {
        let time = vc_framework::rfc3339(saved.time_micros);
        let before = &scale.charge;
        return Err(format!(
            "plugin fairshare: usage of {time} was charged for {before}, now for {charge}: not read"
        ));
    }
    // Another leader's clock may be ahead of ours. Its time counts as now.
    let time = saved.time_micros.min(now);
    let ahead = saved.time_micros - time;
    let half_life = arguments.half_life_micros;
    let decay = match &saved.scale {
        Some(scale) => {
            let origin = scale.origin_micros - ahead;
            Decay { half_life: scale.half_life_micros.max(1), origin }
        }
        None => Decay { half_life, origin: time },
    };
    let mut ledger = Ledger::new(half_life, time);
    ledger.decay = decay;
    let weight = decay.weight(time);
    for account in &saved.accounts {
        let usage = match &saved.scale {
            Some(_) => Usage { closed: account.closed, rate: account.rate }.at(weight),
            None => decay.usage_of(account.decayed_micros),
        };
        if 0 < usage {
            ledger.remember(&account.queue, &account.account, usage);
        }
    }
    ledger.shares.restore(view, &saved.shares, RestoredAt { time_micros: time, weight });
    if decay.half_life != half_life {
        ledger.change_half_life(half_life, time);
    }
    ledger.note_saved();
    ledger.saves = SaveLog { is_saved: true, at_micros: Some(time), ..SaveLog::default() };
    Ok((ledger, time))
}
