# The commands of this project. `make demo` and `make test` are all that a newcomer needs.
CARGO ?= cargo
export GO ?= go
IMAGE ?= vc-scheduler:dev
VCSIM_IMAGE ?= vcsim:dev

.PHONY: demo test gates test-gates test-rust test-workspace test-real test-upgrade test-apiserver test-image
.PHONY: test-scenarios-apiserver apiserver chromium fuzz-evict fuzz-fast fuzz-usage fuzz-http fuzz-answers fuzz bench bench-wire bench-apiserver lint docs image
.PHONY: lint-dependencies notices sbom release

demo:
	$(CARGO) build --release --locked
	./target/release/vcsim demo

# Everything. First all is built, once; then the tests of the workspace, which compute, run beside
# those on the real API server, which mostly wait, and those that count instructions. Each prints its
# output as a whole when it ends; when one fails, the others are waited for, and the command fails.
#
# A fresh clone compiles each crate once. What cargo keeps for compiling parts of one again would take a
# third of its disk. Where `cargo build` has kept some, it goes on.
ifeq ($(wildcard target/debug/incremental/*),)
test: export CARGO_INCREMENTAL = 0
endif
test: apiserver chromium
	tests/apiserver/render.sh --check
	$(CARGO) test --workspace --locked --no-run
	$(CARGO) test --workspace --locked --test real --no-run
	$(CARGO) bench --workspace --locked --profile dev --bench gates --bench twin_gates --no-run
	$(MAKE) --no-print-directory -j3 --output-sync=target test-workspace test-real test-gates
	$(MAKE) test-image

# With less claim to the processor than what has to answer in time.
test-workspace:
	nice $(CARGO) test --workspace --locked

test-real:
	$(CARGO) test --workspace --locked --test real

# A scheduler of another commit and this one hand over to each other on the real API server, under load.
# FROM=COMMIT, or a tag; it is built in target/earlier.
EARLIER = $(CURDIR)/target/earlier
test-upgrade: apiserver
	rm -rf $(EARLIER)/tree
	mkdir -p $(EARLIER)/tree
	git archive $(or $(FROM),$(error FROM=COMMIT is needed)) | tar --extract --touch --directory $(EARLIER)/tree
	cd $(EARLIER)/tree && CARGO_TARGET_DIR=$(EARLIER)/target $(CARGO) build --locked --bin vc-scheduler
	EARLIER_SCHEDULER=$(EARLIER)/target/debug/vc-scheduler \
		$(CARGO) test --locked --test real -- two_versions_hand_over

# What needs no Go: all but the real API server and helm.
test-rust:
	$(CARGO) test --workspace --locked

# Random clusters in which pods are evicted, until one breaks a promise; it is shown as small as it
# can be, with its seed. SEED=N repeats one.
fuzz-evict:
	FUZZ_EVICT=$(or $(SEED),forever) $(CARGO) test --release --locked -p vc-engine --test engine \
		fuzz_evict -- --nocapture

# Random stories that the plain and the fast evaluator see, until the two differ; SEED=N repeats one.
fuzz-fast:
	FUZZ_FAST=$(or $(SEED),forever) $(CARGO) test --release --locked -p vc-engine --test engine \
		fuzz_fast -- --nocapture

# The laws of preemption by usage over random loads, until one breaks; SEED=N repeats one.
fuzz-usage:
	FUZZ_USAGE=$(or $(SEED),forever) $(CARGO) test --release --locked -p vc-engine --test engine \
		fs_law -- --nocapture

# Random questions and bodies for the answers, until one of them fails; SEED=N repeats one.
fuzz-http:
	FUZZ_HTTP=$(or $(SEED),forever) $(CARGO) test --release --locked -p vc-page --test page \
		ans_16_random -- --nocapture

# The laws of numbers, blocking sets, starts and what-ifs over N random clusters each, and N/100 bundles that are
# replayed. No question leaves a trace.
N = 100000
fuzz-answers:
	FUZZ_ANSWERS=$(N) $(CARGO) test --release --locked -p vc-answers --test answers -- \
		ans_05_groups_are_a_partition ans_14_limits ans_14_shares ans_19 ans_21 ans_29 ans_30 ans_32 ans_38 ans_43 \
		ans_46_what_was_recorded ans_53 ans_54
	FUZZ_REPLAY=$$(($(N) / 100)) $(CARGO) test --release --locked -p vc-engine --test engine -- ans_104

# Whole scheduler processes over a simulated API server with faults, until an invariant is violated;
# SEED=N repeats one.
fuzz:
	$(CARGO) run --release --locked -p vc-sim -- fuzz --seeds $(or $(SEED),forever)

# Breaks each rule of tests/broken-rules in a copy, and looks whether `vcsim fuzz` finds it; an hour. RULE="03 07"
# takes only some.
.PHONY: broken-rules
broken-rules:
	CARGO="$(CARGO)" tests/broken-rules/run.sh $(RULE)

# Instruction counts with limits; valgrind. The runner of the same version is installed once.
GUNGRAUN = target/tools/bin/gungraun-runner
COUNT = GUNGRAUN_RUNNER=$(CURDIR)/$(GUNGRAUN) nice $(CARGO) bench --locked
gates: $(GUNGRAUN)
	$(COUNT) --bench gates --bench twin_gates

# The same of what the tests have built; without valgrind nothing is counted.
ifneq ($(shell command -v valgrind),)
test-gates: $(GUNGRAUN)
	$(COUNT) --workspace --profile dev --bench gates --bench twin_gates
else
test-gates:
	@echo "instructions are not counted: valgrind is not installed"
endif

$(GUNGRAUN): Cargo.lock
	$(CARGO) install --quiet --locked --root target/tools gungraun-runner --version \
		$$(sed -n '/^name = "gungraun"$$/{n;s/version = "\(.*\)"/\1/p}' Cargo.lock)
	touch $@

# The real kube-apiserver, the real helm, and Volcano's own programs; Go 1.26. Minutes the first time,
# seconds afterwards.
apiserver:
	tests/apiserver/build.sh
	tests/volcano/build.sh

# A browser for the tests of the page. Where it cannot be installed, these tests are left out.
chromium:
	tests/browser/install.sh

# The binary and the shipped manifests on a real kube-apiserver.
test-apiserver: apiserver
	tests/apiserver/render.sh --check
	$(CARGO) test --workspace --locked --test real

# Every scenario without clock ticks, through the binary and a real kube-apiserver; `make test` takes
# some.
test-scenarios-apiserver: apiserver
	SCENARIOS=all $(CARGO) test --workspace --locked --test real scenarios:: -- --nocapture

# The build steps of the Dockerfile, with the fast profile. Debug information is stripped anyway.
test-image:
	CARGO_PROFILE_DEV_DEBUG=false deploy/build.sh target/image dev

bench:
	$(CARGO) bench --locked --bench cycle

# The scheduler's process against an API server: every figure of "On the wire" in
# docs/performance.md. CASE=waiting measures only the cases of that name.
bench-wire: kubectl-vc
	$(CARGO) bench --locked --bench wire -- $(CASE) --plots target/plots

# Our column of the comparison with Volcano in README.md and docs/performance.md: exactly its cases.
# CASE=preempt/100 measures only the rows that have a case of that name.
.PHONY: bench-compare
bench-compare: apiserver
	$(CARGO) bench --locked --bench cycle -- $(CASE) --compare
	$(CARGO) bench --locked --bench wire -- $(CASE) --compare --apiserver
	$(CARGO) bench --locked --bench wire -- $(CASE) --compare

bench-apiserver: apiserver kubectl-vc
	$(CARGO) bench --locked --bench wire -- $(CASE) --apiserver --plots target/plots

# The program of another package that the case answers/local runs.
.PHONY: kubectl-vc
kubectl-vc:
	$(CARGO) build --release --locked --bin kubectl-vc

lint: lint-dependencies
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --locked --test real -- -D warnings

# Tools of a fixed version, each in a folder of its own, installed once.
CARGO_DENY_VERSION = 0.20.2
CARGO_DENY = target/tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
CARGO_CYCLONEDX_VERSION = 0.5.9
CARGO_CYCLONEDX = target/tools/cargo-cyclonedx-$(CARGO_CYCLONEDX_VERSION)/bin/cargo-cyclonedx

$(CARGO_DENY):
	$(CARGO) install --quiet --locked --root $(@D)/.. cargo-deny --version $(CARGO_DENY_VERSION)

$(CARGO_CYCLONEDX):
	$(CARGO) install --quiet --locked --root $(@D)/.. cargo-cyclonedx \
		--version $(CARGO_CYCLONEDX_VERSION)

# Licences, doubled crates and sources of the dependencies (deny.toml). Known vulnerabilities are
# checked where their database can be fetched: without it the rest must still be usable.
lint-dependencies: $(CARGO_DENY)
	$(CARGO_DENY) --locked check licenses bans sources
	@if timeout 60 $(CARGO_DENY) --locked fetch db >/dev/null 2>&1; then \
		$(CARGO_DENY) --locked check --disable-fetch advisories; \
	else \
		echo "advisories are not checked: their database cannot be fetched"; \
	fi

docs:
	UPDATE_DOCS=1 $(CARGO) test --locked -p vc-daemon --lib document
	UPDATE_DOCS=1 $(CARGO) test --locked -p vc-telemetry
	UPDATE_DOCS=1 $(CARGO) test --locked -p vc-plugins --test conf document
	UPDATE_DOCS=1 $(CARGO) test --locked -p vc-engine --test writing_a_plugin
	UPDATE_DOCS=1 $(CARGO) test --locked -p vc-scheduler --test chart
	UPDATE_DOCS=1 $(CARGO) test --locked --workspace --test page --test browser
	$(CARGO) doc --workspace --no-deps --locked
	$(CARGO) build --locked
	target/debug/vcsim demo --plain --svg docs/demo.svg

# What `--version` says of its origin: the commit, `-dirty` with changes, `unknown` without git.
# DOCKER_FLAGS: more arguments, as `--platform linux/arm64`.
DOCKER_BUILD = docker build $(DOCKER_FLAGS) \
	--build-arg VERSION="$$(sed -n '/^version = /{s/.*"\(.*\)"/\1/p;q}' Cargo.toml)" \
	--build-arg VC_GIT_SHA="$$(git describe --always --dirty --abbrev=40 --exclude '*' || echo unknown)" \
	--build-arg VC_BUILT_AT="$$(date -u +%Y-%m-%dT%H:%M:%SZ)"
image:
	$(DOCKER_BUILD) --target vc-scheduler -t $(IMAGE) .
	$(DOCKER_BUILD) --target vcsim -t $(VCSIM_IMAGE) .

# The third-party notices, and the software bills of material of the programs (CycloneDX) in target/sbom.
notices:
	UPDATE_DOCS=1 $(CARGO) test --locked -p vc-scheduler --test notices

SBOM_TARGET ?= x86_64-unknown-linux-musl
sbom: $(CARGO_CYCLONEDX)
	CARGO_CYCLONEDX=$(CARGO_CYCLONEDX) deploy/sbom.sh target/sbom $(SBOM_TARGET)

# Binaries, images, chart, manifests, SBOM and notices of one version, with checksums.
release:
	deploy/release.sh $(VERSION)
