//! Quota of the queues as `vcsim run` prints it. Specification: cohort.md B.2, B.8.

use serde::Serialize;
use vc_page::QueueQuotaJson;

/// A queue or cohort with its quota after the last cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaUseOutput {
    pub queue: String,
    /// `/top/.../queue`.
    pub path: String,
    /// It has children and holds no PodGroups.
    pub cohort: bool,
    pub resources: Vec<QueueQuotaJson>,
    /// As in the annotation of the Queue: rounded up, 2^63 - 1 if it is infinite. `None`: shares
    /// are not compared.
    pub weighted_share: Option<i64>,
}

impl From<&vc_engine::QuotaUse> for QuotaUseOutput {
    fn from(quota: &vc_engine::QuotaUse) -> Self {
        Self {
            queue: quota.queue.to_string(),
            path: quota.path.clone(),
            cohort: !quota.is_leaf,
            resources: quota.amounts.iter().map(QueueQuotaJson::from).collect(),
            weighted_share: quota.share.map(published),
        }
    }
}

fn published(share: f64) -> i64 {
    if share.is_infinite() { i64::MAX } else { share.ceil() as i64 }
}

impl QuotaUseOutput {
    /// One row per resource; a queue of a tree without quotas has one, too.
    pub(super) fn rows(&self) -> Vec<[String; 8]> {
        let share = match self.weighted_share {
            None => "-".to_owned(),
            Some(i64::MAX) => "infinite".to_owned(),
            Some(share) => share.to_string(),
        };
        let dash = || "-".to_owned();
        if self.resources.is_empty() {
            let path = self.path.clone();
            return vec![[path, dash(), dash(), dash(), dash(), dash(), dash(), share]];
        }
        let row = |of: &QueueQuotaJson| {
            let QueueQuotaJson { resource, nominal, used, borrowed, lent, available } = of.clone();
            let (path, share) = (self.path.clone(), share.clone());
            [path, resource, nominal, used, borrowed, lent, available, share]
        };
        self.resources.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_published_rounded_up() {
        let quota = |share| vc_engine::QuotaUse {
            queue: "q".into(),
            path: "/root/q".to_owned(),
            is_leaf: true,
            amounts: Vec::new(),
            share,
        };
        let shown = |share| {
            let quota = QuotaUseOutput::from(&quota(share));
            (quota.weighted_share, quota.rows()[0][7].clone())
        };
        assert_eq!(shown(None), (None, "-".to_owned()));
        assert_eq!(shown(Some(0.67)), (Some(1), "1".to_owned()));
        assert_eq!(shown(Some(f64::INFINITY)), (Some(i64::MAX), "infinite".to_owned()));
    }
}
