#!/bin/sh
# Builds Volcano's own programs of the release in go.mod, which the tests run beside ours, and renders
# its chart: target/volcano/{controller-manager,scheduler,webhook-manager,manifests.yaml}. The first
# build takes about 5 minutes of CPU; afterwards go finds out within seconds that nothing is to be done.
# Runs after tests/apiserver/build.sh, which checks the tools and builds helm.
set -eu
cd "$(dirname "$0")"
go=${GO:-go}
target=$(cd ../.. && pwd)/target

# As for the browser: not every module proxy has this module, and without it the rest is tested.
if ! "$go" mod download; then
    echo "tests/volcano/build.sh: Volcano's module cannot be fetched: tests with its programs are left out" >&2
    echo "hint: is there a way to the module proxy ($("$go" env GOPROXY))? GOPROXY names another one" >&2
    exit 0
fi
mkdir -p "$target/volcano"
commands=volcano.sh/volcano/cmd
"$go" build -buildvcs=false -ldflags "-s -w" -o "$target/volcano/" \
    $commands/controller-manager $commands/scheduler $commands/webhook-manager

# The chart has the definitions of the custom resources, the roles and the registrations of the webhooks.
chart=$("$go" list -m -f '{{.Dir}}' volcano.sh/volcano)/installer/helm/chart/volcano
"$target/apiserver/helm" template volcano "$chart" --namespace volcano-system --include-crds \
    >"$target/volcano/manifests.yaml"
