//! Results in the XML that build servers read.

use std::fmt::Write as _;

use super::suite::{ScenarioVerdict, SuiteReport, TestedScenario};

pub(super) fn render(report: &SuiteReport) -> String {
    let failures = count(report, |verdict| matches!(verdict, ScenarioVerdict::Failed(_)));
    let errors = count(report, |verdict| matches!(verdict, ScenarioVerdict::Unreadable(_)));
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    let _infallible = writeln!(
        out,
        "<testsuite name=\"vcsim\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\">",
        report.tested.len()
    );
    for tested in &report.tested {
        out.push_str(&case(tested));
    }
    out.push_str("</testsuite>\n");
    out
}

fn count(report: &SuiteReport, test: fn(&ScenarioVerdict) -> bool) -> usize {
    report.tested.iter().filter(|tested| test(&tested.verdict)).count()
}

fn case(TestedScenario { name, verdict, file }: &TestedScenario) -> String {
    let area = name.split_once('/').map_or("scenario", |(area, _)| area);
    let file = escaped(&file.display().to_string());
    let open = format!(
        "  <testcase classname=\"{}\" name=\"{}\" file=\"{file}\"",
        escaped(area),
        escaped(name)
    );
    match verdict {
        ScenarioVerdict::Passed | ScenarioVerdict::Written => format!("{open}/>\n"),
        ScenarioVerdict::Failed(differences) => {
            let text = escaped(&differences.join("\n"));
            format!("{open}>\n    <failure>{text}</failure>\n  </testcase>\n")
        }
        ScenarioVerdict::Unreadable(error) => {
            let text = escaped(error);
            format!("{open}>\n    <error>{text}</error>\n  </testcase>\n")
        }
    }
}

/// Markup characters escaped; control characters, which XML cannot hold, replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
