//! The program and its libraries with their unwind tables, read from their files.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

use framehop::{ExplicitModuleSectionInfo, Module};
use object::{File, Object, ObjectSection, ObjectSegment};

/// All modules of the process whose files can be read.
pub(super) fn modules() -> std::io::Result<Vec<Module<Vec<u8>>>> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    let program = fs::read_link("/proc/self/exe")?.to_string_lossy().into_owned();
    let ranges = ranges_of_files(&maps);
    let modules = ranges.into_iter().filter_map(|(path, range)| {
        // The program may have been replaced by another one of its name.
        let file = if path == program { "/proc/self/exe" } else { &path };
        module(&path, range, &fs::read(file).ok()?)
    });
    Ok(modules.collect())
}

/// Where each file is mapped, from the text of `/proc/self/maps`. Files without code are left out.
fn ranges_of_files(maps: &str) -> BTreeMap<String, Range<u64>> {
    let (mut ranges, mut has_code) = (BTreeMap::<String, Range<u64>>::new(), Vec::new());
    for line in maps.lines() {
        let Some((addresses, rest)) = line.split_once(' ') else { continue };
        let Some(path) = rest.find('/').map(|at| &rest[at..]) else { continue };
        let Some((start, end)) = addresses.split_once('-') else { continue };
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (Some(start), Some(end)) = (number(start), number(end)) else { continue };
        let range = ranges.entry(path.to_owned()).or_insert(start..end);
        *range = range.start.min(start)..range.end.max(end);
        if rest.as_bytes().get(2) == Some(&b'x') {
            has_code.push(path);
        }
    }
    ranges.retain(|path, _| has_code.contains(&path.as_str()));
    ranges
}

/// `None`: the file has no unwind tables, or is no ELF file.
fn module(path: &str, range: Range<u64>, bytes: &[u8]) -> Option<Module<Vec<u8>>> {
    let file = File::parse(bytes).ok()?;
    // The first segment is mapped where the range begins.
    let base = file.segments().map(|segment| segment.address()).min()? & !0xfff;
    let section = |name: &str| {
        let section = file.section_by_name(name)?;
        Some((section.address()..section.address() + section.size(), section))
    };
    let data = |name: &str| Some(section(name)?.1.data().ok()?.to_vec());
    let place = |name: &str| Some(section(name)?.0);
    let info = ExplicitModuleSectionInfo {
        base_svma: base,
        text_svma: place(".text"),
        got_svma: place(".got"),
        eh_frame_svma: place(".eh_frame"),
        eh_frame: Some(data(".eh_frame")?),
        eh_frame_hdr_svma: place(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        ..Default::default()
    };
    Some(Module::new(path.to_owned(), range.clone(), range.start, info))
}

#[test]
fn files_with_code_are_found_where_they_are_mapped() {
    let maps = "1000-2000 r--p 00000000 08:01 7 /bin/a b\n\
        2000-3000 r-xp 00001000 08:01 7 /bin/a b\n\
        3000-4000 rw-p 00000000 00:00 0 [heap]\n\
        5000-6000 r--p 00000000 08:01 8 /etc/data\n\
        7000-8000 r-xp 00000000 00:00 0\n";
    let wanted = BTreeMap::from([("/bin/a b".to_owned(), 0x1000..0x3000)]);
    assert_eq!(ranges_of_files(maps), wanted);
    assert!(!modules().unwrap().is_empty());
}
