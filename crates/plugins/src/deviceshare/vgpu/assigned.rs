//! The annotation that names the vGPUs of a pod: how it is written and read. Specification:
//! plugins-nodes.md 16.5 ("Bind annotations").

use super::super::family::DevicePart;

/// Name of the vendor in each entry.
const VENDOR: &str = "NVIDIA";

/// Writes the devices of each container. The n-th part is that of the n-th container, because the
/// device plugin counts containers so.
pub(super) fn encode(containers: &[Vec<DevicePart>]) -> String {
    let entry = |share: &DevicePart| {
        let DevicePart { device, memory, cores } = share;
        format!("{device},{VENDOR},{memory},{cores}:")
    };
    let parts: Vec<String> =
        containers.iter().map(|shares| shares.iter().map(entry).collect()).collect();
    parts.join(";")
}

/// A device that a container has, as the annotation names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Assigned<'a> {
    /// UUID of the device, without the slot of a MIG instance.
    pub(in super::super) uuid: &'a str,
    pub(in super::super) memory: i64,
    pub(in super::super) cores: i64,
}

/// Reads the devices of all containers. Entries with missing fields or amounts that are no numbers
/// are left out.
pub(in super::super) fn decode(text: &str) -> impl Iterator<Item = Assigned<'_>> {
    text.split([';', ':']).filter_map(assigned)
}

fn assigned(entry: &str) -> Option<Assigned<'_>> {
    let mut fields = entry.split(',');
    let (device, _vendor) = (fields.next()?, fields.next()?);
    let mut amount = || fields.next()?.parse::<i64>().ok().filter(|&amount| 0 <= amount);
    let (memory, cores) = (amount()?, amount()?);
    let uuid = device.split('[').next().unwrap_or(device);
    Some(Assigned { uuid, memory, cores })
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
        let one = |uuid, memory, cores| Assigned { uuid, memory, cores };
        assert_eq!(read("GPU-0,NVIDIA,4096,30:"), [one("GPU-0", 4096, 30)]);
        let text = "GPU-0,NVIDIA,-1,30:GPU-1,NVIDIA,x,30:GPU-2,NVIDIA,5:;GPU-3,NVIDIA,1024,0:;:";
        assert_eq!(read(text), [one("GPU-3", 1024, 0)]);
        assert_eq!(read(""), []);
    }

    #[test]
    fn the_parts_are_those_of_the_containers() {
        let containers = [vec![], vec![share("a", 1, 2), share("b", 3, 4)], vec![share("a", 5, 6)]];
        let text = encode(&containers);
        assert_eq!(text, ";a,NVIDIA,1,2:b,NVIDIA,3,4:;a,NVIDIA,5,6:");
        let read: Vec<_> = decode(&text).map(|it| (it.uuid, it.memory, it.cores)).collect();
        assert_eq!(read, [("a", 1, 2), ("b", 3, 4), ("a", 5, 6)]);
    }
}
