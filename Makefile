# The commands of this project. `make demo` and `make test` are all that a newcomer needs.
CARGO ?= cargo
GO ?= go
IMAGE ?= vc-scheduler:dev
# Of tests/apiserver/go.mod; without it the API server calls itself v0.0.0-master.
K8S_VERSION := -X k8s.io/component-base/version.gitVersion=v1.36.1 \
	-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36
GO_BUILD = cd tests/apiserver && $(GO) build -buildvcs=false -ldflags "-s -w $(K8S_VERSION)"
GO_MODULE = tests/apiserver/go.mod tests/apiserver/go.sum

.PHONY: demo test test-apiserver bench lint docs image

demo:
	$(CARGO) build --release --locked
	./target/release/vcsim demo

test:
	$(CARGO) test --workspace --locked

# The binary and the shipped manifests on a real kube-apiserver. Needs Go 1.26.
test-apiserver: target/apiserver/harness target/apiserver/helm
	tests/apiserver/render.sh --check
	$(CARGO) test --locked --features apiserver --test real

# A real kube-apiserver and the real helm: some minutes and 2 GB the first time. go leaves a binary
# alone that is up to date, make then wants its new time.
target/apiserver/harness: $(wildcard tests/apiserver/*.go) $(GO_MODULE)
	$(GO_BUILD) -o ../../$@ .
	touch $@

target/apiserver/helm: $(GO_MODULE)
	$(GO_BUILD) -o ../../$@ helm.sh/helm/v4/cmd/helm
	touch $@

bench:
	$(CARGO) bench --locked --bench cycle

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings

docs:
	UPDATE_DOCS=1 $(CARGO) test --locked -p vc-scheduler --lib document
	UPDATE_DOCS=1 $(CARGO) test --locked -p vc-telemetry
	$(CARGO) doc --workspace --no-deps --locked

image:
	docker build -t $(IMAGE) .
