//! Services and controllers, of which only what they select is read. One that cannot be read
//! selects nothing: it only moves scores. Specification: plugins-nodes.md 7.8.

use std::sync::Arc;

use serde::Deserialize;
use vc_model::{LabelSelector, SelectorKind, SelectorObject};

use crate::metadata::{self, SlimMetadata};
use crate::problems::{FieldPath, Problems};
use crate::selector::{SlimLabelSelector, label_selector};
use crate::soft::{LenientField, LenientMap, object};
use crate::{Kind, WireError, named};

/// `spec` of an object that selects by labels alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimByLabels {
    pub selector: LenientField<LenientMap<Arc<str>>>,
}

/// `spec` of an object that has a label selector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SlimBySelector {
    pub selector: LenientField<SlimLabelSelector>,
}

object!(SlimByLabels, SlimBySelector);

/// A form that a selector has.
trait SelectorForm {
    fn read(self, path: &FieldPath<'_>, problems: &mut Problems) -> Option<LabelSelector>;
}

impl SelectorForm for SlimByLabels {
    fn read(self, path: &FieldPath<'_>, problems: &mut Problems) -> Option<LabelSelector> {
        let n_before = problems.len();
        let match_labels = match self.selector {
            LenientField::Absent => return None,
            given => problems.labels(given, path),
        };
        let selector = LabelSelector { match_labels, ..LabelSelector::default() };
        (problems.len() == n_before).then_some(selector)
    }
}

impl SelectorForm for SlimBySelector {
    fn read(self, path: &FieldPath<'_>, problems: &mut Problems) -> Option<LabelSelector> {
        let n_before = problems.len();
        let selector = problems.read(self.selector, path)?;
        let selector = label_selector(selector, path, problems);
        (problems.len() == n_before).then_some(selector)
    }
}

/// What is said of the type, its name, its `spec`, and its kind.
macro_rules! selecting {
    ($text:literal, $slim:ident, $spec:ty, $kind:ident) => {
        #[doc = $text]
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default)]
        pub struct $slim {
            pub metadata: LenientField<SlimMetadata>,
            pub spec: LenientField<$spec>,
        }

        impl $slim {
            /// What it selects, and what is wrong with the object.
            ///
            /// # Errors
            /// Namespace or name cannot be read.
            pub fn to_record(self) -> Result<(SelectorObject, Vec<String>), WireError> {
                record(Kind::$kind, SelectorKind::$kind, self.metadata, self.spec)
            }
        }
    };
}

selecting!("A Service as it is decoded.", SlimService, SlimByLabels, Service);
selecting!(
    "A ReplicationController as it is decoded.",
    SlimReplicationController,
    SlimByLabels,
    ReplicationController
);
selecting!("A ReplicaSet as it is decoded.", SlimReplicaSet, SlimBySelector, ReplicaSet);
selecting!("A StatefulSet as it is decoded.", SlimStatefulSet, SlimBySelector, StatefulSet);

fn record<S: SelectorForm + Default>(
    kind: Kind,
    selects: SelectorKind,
    metadata: LenientField<SlimMetadata>,
    spec: LenientField<S>,
) -> Result<(SelectorObject, Vec<String>), WireError> {
    let mut problems = Problems::default();
    let key = metadata::read(kind, metadata, &mut problems)?.key();
    let path = FieldPath::root("spec");
    let spec = problems.or_default(spec, &path);
    let selector = spec.read(&path.field("selector"), &mut problems);
    let problems = problems.of(&named(kind, &key.namespace, &key.name));
    Ok((SelectorObject { kind: selects, key, selector }, problems))
}
