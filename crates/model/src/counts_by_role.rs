//! Task counts of the roles of a job. Most jobs have one role, so they stand in a list: a tree would take 720 bytes
//! for each job.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::status::Counts;

/// Task counts by role, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "BTreeMap<Arc<str>, Counts>")]
pub struct CountsByRole(Vec<(Arc<str>, Counts)>);

impl CountsByRole {
    /// Returns the counts of a role. Returns `None` if it has none.
    pub fn get(&self, role: &str) -> Option<&Counts> {
        let position = self.position(role).ok()?;
        Some(&self.0[position].1)
    }

    /// Returns the counts of a role for writing. They are created if the role has none.
    pub fn entry(&mut self, role: &Arc<str>) -> &mut Counts {
        let position = self.position(role).unwrap_or_else(|position| {
            self.0.reserve_exact(1);
            self.0.insert(position, (role.clone(), Counts::default()));
            position
        });
        &mut self.0[position].1
    }

    /// Removes the counts of a role.
    pub fn remove(&mut self, role: &str) {
        if let Ok(position) = self.position(role) {
            self.0.remove(position);
        }
    }

    /// Returns the roles with their counts, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Counts)> {
        self.0.iter().map(|(role, counts)| (role, counts))
    }

    /// Returns the position of a role in the list, or that at which it would be inserted.
    fn position(&self, role: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(name, _)| (**name).cmp(role))
    }
}

impl From<BTreeMap<Arc<str>, Counts>> for CountsByRole {
    fn from(counts: BTreeMap<Arc<str>, Counts>) -> Self {
        Self(counts.into_iter().collect())
    }
}

impl Serialize for CountsByRole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TaskStatus;

    #[test]
    fn roles_have_counts_in_the_order_of_their_names() {
        let mut roles = CountsByRole::default();
        for role in ["worker", "ps", "worker", "master"] {
            roles.entry(&role.into()).add(TaskStatus::Pending, false, false);
        }
        let text = |(role, counts): (&Arc<str>, &Counts)| format!("{role} {}", counts.total());
        let texts: Vec<String> = roles.iter().map(text).collect();
        assert_eq!(texts, ["master 1", "ps 1", "worker 2"]);
        roles.remove("ps");
        roles.remove("no such role");
        assert_eq!(roles.get("worker").map(Counts::total), Some(2));
        assert_eq!((roles.get("ps"), roles.iter().count()), (None, 2));
    }
}
