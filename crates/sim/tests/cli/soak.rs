//! `vcsim soak`: a short soak is clean, its samples are written, and what is refused.

use crate::common::*;

#[test]
fn nothing_grows_in_a_short_soak() {
    let output = folder("soak").join("short");
    // A heap finds its size within minutes, of which a short soak has few.
    let flags = "--nodes 10 --hours 0.5 --pods 4000 --samples 20 --memory-limit 40 --output";
    let mut arguments = vec!["soak"];
    arguments.extend(flags.split(' ').chain(output.to_str()));
    let Called { code, stdout: out, stderr: err } = vcsim(&arguments);
    assert_eq!(code, 0, "{out}{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 13, "{out}");
    assert!(lines[11].ends_with(" tables: nothing grows"), "{out}");
    let column = |number: usize| -> Vec<u64> {
        let cells = lines[1..11].iter().map(|line| line.split_whitespace().nth(number).unwrap());
        cells.map(|cell| cell.parse().unwrap()).collect()
    };
    // Pods live and are evicted all the time.
    let (lived, evicted) = (column(1), column(2));
    assert!(lived.windows(2).all(|pair| pair[0] + 100 < pair[1]), "{out}");
    assert!(3_300 < lived[9] && 10 < evicted[9] && evicted[9] < 1_500, "{out}");

    let csv = std::fs::read_to_string(output.with_extension("csv")).unwrap();
    assert_eq!(csv.lines().count(), 21, "{csv}");
    let header = csv.lines().next().unwrap_or_default();
    assert!(header.starts_with("hour,"), "{header}");
    for table in
        ["rows.pods", "writes.targets", "cache.pod_group_texts_bytes", "cache.written_events"]
    {
        assert!(header.split(',').any(|column| column == table), "{table} in {header}");
    }
    let svg = std::fs::read_to_string(output.with_extension("svg")).unwrap();
    assert!(svg.contains("resident memory, MiB") && svg.ends_with("</svg>\n"), "{svg}");
}

#[test]
fn pods_that_would_hardly_run_are_refused() {
    let Called { code, stderr: err, .. } =
        vcsim(&["soak", "--nodes", "1", "--hours", "1", "--pods", "1000000"]);
    assert_eq!(code, 1);
    assert!(err.contains("1000000 pods in 1.00 hours on 1 nodes would run 0.1 s each"), "{err}");
    assert!(err.contains("hint: that must be 5 s at least"), "{err}");
    let Called { code, stderr: err, .. } = vcsim(&["soak", "--hours", "0"]);
    assert_eq!(code, 2);
    assert!(err.contains("must be from 0.01 to 10000"), "{err}");
}
