#!/bin/sh
# Builds what the tests on a real API server need: target/apiserver/harness (kube-apiserver with
# etcd) and target/apiserver/helm. The first build takes about 11 minutes of CPU and 2 GB of
# downloaded and built packages; afterwards go finds out within seconds that nothing is to be done.
set -eu
cd "$(dirname "$0")"
go=${GO:-go}
out=$(cd ../.. && pwd)/target/apiserver

fail() {
    echo "tests/apiserver/build.sh: $1" >&2
    echo "hint: $2" >&2
    exit 1
}

command -v "$go" >/dev/null 2>&1 ||
    fail "no go: the tests on a real API server are built with it" \
        "install Go 1.26 or newer (https://go.dev/dl/), or run the other tests with 'make test-rust'"
# In this folder: where go.mod asks for a newer Go than the installed one, go 1.21 and newer fetch it.
"$go" version >/dev/null ||
    fail "this go is too old: $(GOTOOLCHAIN=local "$go" env GOVERSION 2>/dev/null)" \
        "install Go 1.26 or newer (https://go.dev/dl/), or run the other tests with 'make test-rust'"
"$go" mod download ||
    fail "the modules of go.mod cannot be fetched" \
        "is there a way to the module proxy ($("$go" env GOPROXY))? GOPROXY names another one"

# Without a version the API server calls itself v0.0.0-master.
kubernetes=$("$go" list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${kubernetes#v1.}
at=k8s.io/component-base/version
flags="-s -w -X $at.gitVersion=$kubernetes -X $at.gitMajor=1 -X $at.gitMinor=${minor%%.*}"
mkdir -p "$out"
"$go" build -buildvcs=false -ldflags "$flags" -o "$out/harness" .
"$go" build -buildvcs=false -ldflags "$flags" -o "$out/helm" helm.sh/helm/v4/cmd/helm
