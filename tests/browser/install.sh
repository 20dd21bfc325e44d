#!/bin/sh
# Installs Chromium for the tests of the page in a browser, where that needs no question: as root on
# a system with apt-get. Elsewhere it says that these tests are left out. It never fails: the tests
# themselves fail without a browser where CI is set.
set -u
cd "$(dirname "$0")/../.." || exit 0
log=target/browser/install.log

# The names that the tests look for (crates/page/tests/browser/chromium.rs).
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done

leave_out() {
    echo "The page is not tested in a browser: $1. Install chromium to test it."
    exit 0
}

command -v apt-get >/dev/null 2>&1 || leave_out "no Chromium is installed, and there is no apt-get"
[ "$(id -u)" -eq 0 ] || leave_out "no Chromium is installed, and only root may install it"

install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium
}

mkdir -p "${log%/*}"
echo "Installing chromium, for the tests of the page in a browser."
{ install || { apt-get update && install; }; } >"$log" 2>&1 </dev/null || {
    cat "$log"
    leave_out "apt-get cannot install chromium, see $log"
}
