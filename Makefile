# The commands of this project. `make demo` and `make test` are all that a newcomer needs.
CARGO ?= cargo
IMAGE ?= vc-scheduler:dev

.PHONY: demo test bench lint docs image

demo:
	$(CARGO) build --release --locked
	./target/release/vcsim demo

test:
	$(CARGO) test --workspace --locked

bench:
	$(CARGO) bench --locked --bench cycle

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

docs:
	$(CARGO) doc --workspace --no-deps --locked

image:
	docker build -t $(IMAGE) .
