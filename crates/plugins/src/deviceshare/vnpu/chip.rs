//! What the device configuration says about NPUs of one common word. Specification: plugins-nodes.md
//! 16.2 ("vnpus") and 16.9.

/// The NPUs of one common word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct VnpuChip {
    /// The word in the names of annotations.
    pub(in super::super) word: String,
    /// Resource that counts NPUs.
    pub(in super::super) number: String,
    /// Resource of memory in MiB.
    pub(in super::super) memory: String,
    /// Resource of cores.
    pub(in super::super) cores: String,
    /// Memory that pods can have of a whole NPU.
    pub(in super::super) allocatable: i64,
    /// Memory of a whole NPU.
    pub(in super::super) capacity: i64,
    /// Parts of an NPU, by memory.
    pub(in super::super) templates: Vec<VnpuTemplate>,
}

/// A part of an NPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct VnpuTemplate {
    pub(in super::super) name: String,
    pub(in super::super) memory: i64,
}

impl VnpuChip {
    /// Returns the memory of the smallest part that holds so much, or that of a whole NPU. Returns
    /// `None` if no NPU has so much.
    pub(super) fn raised(&self, memory: i64) -> Option<i64> {
        let template = self.templates.iter().find(|template| memory <= template.memory);
        let whole = (memory <= self.capacity).then_some(self.allocatable);
        template.map(|template| template.memory).or(whole)
    }

    /// Returns the template with this memory. Returns `None` for a whole NPU.
    pub(super) fn template(&self, memory: i64) -> Option<&VnpuTemplate> {
        self.templates.iter().find(|template| template.memory == memory)
    }
}

/// Returns the chips that are known without a configuration.
pub(in super::super) fn known_chips() -> Vec<VnpuChip> {
    let template = |(name, memory): (&str, i64)| VnpuTemplate { name: name.to_owned(), memory };
    let templates = [("vir01", 3_072), ("vir02", 6_144), ("vir04", 12_288)];
    vec![VnpuChip {
        word: "Ascend310P".to_owned(),
        number: "huawei.com/Ascend310P".to_owned(),
        memory: "huawei.com/Ascend310P-memory".to_owned(),
        cores: "huawei.com/Ascend310P-core".to_owned(),
        allocatable: 21_527,
        capacity: 24_576,
        templates: templates.map(template).to_vec(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_150_memory_is_raised_to_a_template() {
        let chip = &known_chips()[0];
        for (from, to, expected) in [
            (0, 3072, Some(3072)),
            (3073, 6144, Some(6144)),
            (6145, 12288, Some(12288)),
            (12289, 24576, Some(21527)),
            (24577, 24577, None),
        ] {
            assert_eq!([chip.raised(from), chip.raised(to)], [expected; 2], "{from} to {to}");
        }
        assert_eq!(chip.template(6144).map(|it| &*it.name), Some("vir02"));
        assert_eq!(chip.template(21527), None);
    }
}
