//! The annotation that names the devices of a pod: how it is written and read. Specification:
//! plugins-nodes.md 16.5 ("Bind annotations") and 16.9.

use super::family::DevicePart;

/// A slot of a divided GPU: the name of its group, and its number there.
pub(super) type GpuSlot<'a> = (&'a str, i64);

/// Writes the devices of each container, with the name of their vendor. The n-th part is that of the
/// n-th container, because device plugins count containers so.
pub(super) fn encode(containers: &[Vec<DevicePart>], vendor: &str) -> Vec<String> {
    let entry = |share: &DevicePart| {
        let DevicePart { device, memory, cores } = share;
        format!("{device},{vendor},{memory},{cores}:")
    };
    containers.iter().map(|shares| shares.iter().map(entry).collect()).collect()
}

/// A device that a container has, as the annotation names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assigned<'a> {
    /// UUID of the device, without the slot of a MIG instance.
    pub(super) uuid: &'a str,
    /// The slot of the GPU. `None` if it is not divided.
    pub(super) slot: Option<GpuSlot<'a>>,
    pub(super) memory: i64,
    pub(super) cores: i64,
}

/// Reads the devices of all containers. Entries with missing fields or amounts that are no numbers
/// are left out.
pub(super) fn decode(text: &str) -> impl Iterator<Item = Assigned<'_>> {
    text.split([';', ':']).filter_map(assigned)
}

fn assigned(entry: &str) -> Option<Assigned<'_>> {
    let mut fields = entry.split(',');
    let (device, _vendor) = (fields.next()?, fields.next()?);
    let mut amount = || fields.next()?.parse::<i64>().ok().filter(|&amount| 0 <= amount);
    let (memory, cores) = (amount()?, amount()?);
    let (uuid, slot) = match device.split_once('[') {
        Some((uuid, slot)) => (uuid, slot.strip_suffix(']').and_then(slot_of)),
        None => (device, None),
    };
    Some(Assigned { uuid, slot, memory, cores })
}

fn slot_of(text: &str) -> Option<GpuSlot<'_>> {
    let (group, number) = text.rsplit_once('-')?;
    Some((group, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(device: &str, memory: i64, cores: i64) -> DevicePart {
        DevicePart { device: device.to_owned(), memory, cores }
    }

    #[test]
    fn nodes_145_broken_entries_are_left_out() {
        let read = |text| decode(text).collect::<Vec<_>>();
        let one = |uuid, memory, cores| Assigned { uuid, slot: None, memory, cores };
        assert_eq!(read("GPU-0,NVIDIA,4096,30:"), [one("GPU-0", 4096, 30)]);
        let text = "GPU-0,NVIDIA,-1,30:GPU-1,NVIDIA,x,30:GPU-2,NVIDIA,5:;GPU-3,NVIDIA,1024,0:;:";
        assert_eq!(read(text), [one("GPU-3", 1024, 0)]);
        assert_eq!(read(""), []);
    }

    #[test]
    fn nodes_148_an_instance_is_named_by_its_slot() {
        let slots = |text| decode(text).map(|it| (it.uuid, it.slot)).collect::<Vec<_>>();
        let text = "A[group2-3],NVIDIA,1,0:B[group2],NVIDIA,1,0:C[x-y],NVIDIA,1,0:D,NVIDIA,1,0:";
        let expected = [("A", Some(("group2", 3))), ("B", None), ("C", None), ("D", None)];
        assert_eq!(slots(text), expected);
    }

    #[test]
    fn the_parts_are_those_of_the_containers() {
        let containers = [vec![], vec![share("a", 1, 2), share("b", 3, 4)], vec![share("a", 5, 6)]];
        let text = encode(&containers, "NVIDIA").join(";");
        assert_eq!(text, ";a,NVIDIA,1,2:b,NVIDIA,3,4:;a,NVIDIA,5,6:");
        let read: Vec<_> = decode(&text).map(|it| (it.uuid, it.memory, it.cores)).collect();
        assert_eq!(read, [("a", 1, 2), ("b", 3, 4), ("a", 5, 6)]);
    }
}
