//! `vc-scheduler check --scheduler-conf FILE`: what the file means, every warning with its remedy.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use vc_conf::AllowMissing;

use crate::conf::parse;
use crate::host::MachineFiles;
use crate::loads;

/// Prints what is in force, what is missing and every warning, or on stderr why the file cannot be
/// read. 1: an error, also a plugin that is missing and not `allowed` to be.
pub fn check(path: &Path, allowed: &AllowMissing, out: &mut impl Write) -> ExitCode {
    let mut loaded = match parse(&MachineFiles, path).1 {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    loaded.allow(allowed);
    let (_, warnings) = vc_engine::Engine::new(Default::default(), &loaded.config);
    loaded.warn(warnings);
    loaded.warn(loads::warning(&loaded.config));
    let mut text = vc_conf::render(&loaded);
    let caches = vc_engine::caches_off(&loaded.config);
    if !caches.is_empty() {
        text.push_str("caches that are switched off, which costs time and changes no decision:\n");
        caches.iter().for_each(|cache| text.push_str(&format!("  {cache}\n")));
    }
    let written = out.write_all(text.as_bytes());
    match written.is_ok() && loaded.missing.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exit code and output for a configuration with these plugins.
    fn checked(plugins: &str, allowed: &AllowMissing) -> (bool, String) {
        let name = format!("vc-check-{}-{}", std::process::id(), plugins.len());
        let path = std::env::temp_dir().join(name);
        let text = format!("actions: allocate\ntiers:\n- plugins: [{plugins}]\n");
        std::fs::write(&path, text).unwrap();
        let mut out = Vec::new();
        let code = check(&path, allowed, &mut out);
        std::fs::remove_file(&path).unwrap();
        let is_good = format!("{code:?}") == format!("{:?}", ExitCode::SUCCESS);
        (is_good, String::from_utf8(out).unwrap())
    }

    #[test]
    fn c40_what_is_missing_fails_the_check_unless_it_is_allowed() {
        let allow = |names: &str| AllowMissing::of([names]);
        for (plugins, allowed, is_good, reported) in [
            ("{name: gang}", "", true, "no warnings"),
            ("{name: gang}, {name: magic}", "", false, "1 error:\n  line 3"),
            ("{name: gang}, {name: magic}", "other", false, "1 error:\n  line 3"),
            ("{name: gang}, {name: magic}", "magic", true, "1 warning:\n  line 3"),
            ("{name: gang}, {name: magic}", "*", true, "1 warning:"),
        ] {
            let (good, text) = checked(plugins, &allow(allowed));
            assert_eq!(good, is_good, "{plugins} {allowed}: {text}");
            assert!(text.contains(reported), "{text}");
        }
    }

    #[test]
    fn caches_that_are_switched_off_are_named() {
        let anything = AllowMissing::Nothing;
        let (_, text) = checked("{name: gang}, {name: proportion}, {name: predicates}", &anything);
        assert!(!text.contains("caches"), "{text}");
        let level = "{name: capacity, enableHierarchy: true, arguments: {ancestorReclaimLevel: 1}}";
        let (_, text) = checked(level, &anything);
        let votes =
            "  plugin capacity with ancestorReclaimLevel: votes about victims are not kept: ";
        assert!(text.contains(votes), "{text}");
        let order = "  plugin capacity with enableHierarchy: the order of queues is not kept: ";
        assert!(text.contains(order), "{text}");
        let (_, text) = checked("{name: drf}", &anything);
        assert!(text.contains("  plugin drf: votes about victims are not kept: "), "{text}");
    }

    #[test]
    fn warnings_of_the_engine_stand_among_the_others_by_line() {
        let path = std::env::temp_dir().join(format!("vc-check-lines-{}", std::process::id()));
        let text = "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    arguments:\n      \
            binpack.weight: \"10\"\n  - name: gang\n    enabledJobReady: true\n";
        std::fs::write(&path, text).unwrap();
        let mut out = Vec::new();
        check(&path, &AllowMissing::Nothing, &mut out);
        std::fs::remove_file(&path).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (first, second) = (text.find("  line 6: "), text.find("  line 8: "));
        assert!(first.is_some() && first < second, "{text}");
        assert!(text.contains("hint: write 10 without quotes; until then"), "{text}");
    }
}
