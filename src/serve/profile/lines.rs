//! Names, files and lines of addresses.

use std::collections::HashMap;
use std::ffi::c_void;

use super::proto::{Profile, SourceLine};

const UNKNOWN: &str = "Unknown";

/// Locations of addresses that were looked up already.
#[derive(Default)]
pub(super) struct LocationCache(HashMap<u64, Vec<u64>>);

impl LocationCache {
    /// Locations of the functions at an address, the innermost inlined call first. Functions for
    /// which `is_hidden` is true are left out.
    pub(super) fn locations(
        &mut self,
        profile: &mut Profile,
        address: u64,
        is_hidden: fn(&str) -> bool,
    ) -> &[u64] {
        self.0.entry(address).or_insert_with(|| look_up(profile, address, is_hidden))
    }
}

fn look_up(profile: &mut Profile, address: u64, is_hidden: fn(&str) -> bool) -> Vec<u64> {
    let (mut lines, mut is_known) = (Vec::new(), false);
    backtrace::resolve(address as *mut c_void, |symbol| {
        is_known = true;
        // `#` leaves out the hash behind the name.
        let function = symbol.name().map_or(UNKNOWN.to_owned(), |name| format!("{name:#}"));
        if is_hidden(&function) {
            return;
        }
        let file = symbol.filename().map(|file| file.to_string_lossy().into_owned());
        let file = file.unwrap_or(UNKNOWN.to_owned());
        let line = symbol.lineno().unwrap_or(0);
        lines.push(profile.location(&SourceLine { function, file, line }));
    });
    if !is_known {
        let (function, file) = (UNKNOWN.to_owned(), UNKNOWN.to_owned());
        lines.push(profile.location(&SourceLine { function, file, line: 0 }));
    }
    lines
}
