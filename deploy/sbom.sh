#!/bin/sh
# Writes the software bills of material of the programs: OUT/vc-scheduler.cdx.json, OUT/vcsim.cdx.json and
# OUT/kubectl-vc.cdx.json, CycloneDX 1.5. `make sbom` installs the tool first.
#
#   CARGO_CYCLONEDX=PROGRAM deploy/sbom.sh OUT TARGET
set -eu
cd "$(dirname "$0")/.."
usage="CARGO_CYCLONEDX=PROGRAM deploy/sbom.sh OUT TARGET"
out=${1:?usage: $usage}
target=${2:?usage: $usage}
tool=${CARGO_CYCLONEDX:?usage: $usage}

# The time of the commit: the same sources give the same file.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
# The tool writes beside each manifest.
trap 'rm -f ./*_bin.cdx.json crates/*/*_bin.cdx.json' EXIT
"$tool" cyclonedx -qq --format json --spec-version 1.5 --describe binaries --no-build-deps \
    --target "$target"
mkdir -p "$out"
here=$(pwd)
# References name packages of the workspace by their folder: not by that of this machine.
sed "s|$here|.|g" vc-scheduler_bin.cdx.json >"$out/vc-scheduler.cdx.json"
sed "s|$here|.|g" crates/sim/vcsim_bin.cdx.json >"$out/vcsim.cdx.json"
sed "s|$here|.|g" crates/cli/kubectl-vc_bin.cdx.json >"$out/kubectl-vc.cdx.json"
