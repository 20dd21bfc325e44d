#!/bin/sh
# Builds the binaries, static, and puts them into the given folder: what the Dockerfile does, and
# what can be done where there is no container engine (docs/spec/rust-ecosystem.md 16).
#
#   deploy/build.sh OUT [CARGO_PROFILE]
#
# The steps before it in the Dockerfile give the image's build a layer that changes only with the
# dependencies: the workspace without its code, and what is compiled for that.
#
#   deploy/build.sh --stubs DIR
#   DIR/deploy/build.sh --dependencies [CARGO_PROFILE]
#
# The variable MACHINE (x86_64, amd64, aarch64, arm64) builds for another processor than this one. That
# needs its C compiler: gcc-aarch64-linux-gnu or gcc-x86-64-linux-gnu on Debian. Tried on amd64 for arm64,
# on Debian 12; the binaries ran under qemu-user.
set -eu
cd "$(dirname "$0")/.."
empty='fn main() {}'

fail() {
    echo "deploy/build.sh: $1" >&2
    echo "hint: $2" >&2
    exit 1
}

# The manifests as they are; no code where the targets begin that they name or imply.
stubs() {
    [ ! -e "$1" ] || fail "--stubs: $1 exists" "name a folder that does not"
    for file in Cargo.toml Cargo.lock rust-toolchain* .cargo/config.toml crates/*/Cargo.toml \
        deploy/build.sh build.rs crates/*/build.rs src/main.rs crates/*/src/main.rs src/lib.rs \
        crates/*/src/lib.rs benches/*.rs tests/*/main.rs; do
        [ -f "$file" ] || continue
        mkdir -p "$1/$(dirname "$file")"
        case $file in
        *lib.rs) : >"$1/$file" ;;
        *.rs) echo "$empty" >"$1/$file" ;;
        *) cp "$file" "$1/$file" ;;
        esac
    done
}

# What cargo finds in the workspace of this folder: libraries, programs, build scripts.
targets() {
    cargo metadata --no-deps --format-version 1 --manifest-path "$1/Cargo.toml" |
        grep -o '"kind":\["\(lib\|bin\|custom-build\)"\][^}]*"src_path":"[^"]*"' |
        sed "s|\"src_path\":\"$1/|\"|" | sort
}

# The steps before, as far as they cost next to nothing: cargo finds in the stubs what is here.
check_stubs() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    stubs "$scratch/stubs"
    targets "$(pwd)" >"$scratch/here"
    targets "$scratch/stubs" >"$scratch/there"
    if ! grep -q '"vcsim"' "$scratch/here" || ! diff "$scratch/here" "$scratch/there" >&2; then
        fail "--stubs: cargo does not find the same in the stubs" "see stubs() in deploy/build.sh"
    fi
}

prepare() {
    here=$(uname -m)
    case ${MACHINE:-$here} in
    amd64 | x86_64) machine=x86_64 ;;
    arm64 | aarch64) machine=aarch64 ;;
    *) fail "unknown machine $MACHINE" "MACHINE is x86_64 (amd64) or aarch64 (arm64)" ;;
    esac
    target=$machine-unknown-linux-musl
    tools=
    if [ "$machine" != "$here" ]; then
        tools=$machine-linux-gnu-
        command -v "${tools}gcc" >/dev/null ||
            fail "no C compiler for $machine: ${tools}gcc" \
                "on Debian: apt-get install gcc-$(echo "$machine" | tr _ -)-linux-gnu"
        export "CARGO_TARGET_$(echo "$machine" | tr '[:lower:]' '[:upper:]')_UNKNOWN_LINUX_MUSL_LINKER=${tools}gcc"
    fi
    # The plain compiler builds ring and mimalloc for musl too.
    export "CC_${machine}_unknown_linux_musl=${tools}gcc"
    sysroot=$(rustc --print sysroot)
    # Not asked of the network again when it is there.
    [ -d "$sysroot/lib/rustlib/$target/lib" ] || rustup target add "$target" ||
        fail "no standard library for $target" \
            "install Rust with rustup, or the musl target with your package manager"
}

compile() {
    cargo build --locked --profile "$profile" --target "$target" -p vc-scheduler -p vc-sim \
        -p vc-cli --bin vc-scheduler --bin vcsim --bin kubectl-vc
}

dependencies() {
    [ "$(cat src/main.rs)" = "$empty" ] ||
        fail "--dependencies is for a workspace without code" "make one with --stubs"
    compile
    # Nothing of the stubs may stay: cargo goes by the times of files, and the code that follows may be
    # older than they are.
    set --
    for manifest in Cargo.toml crates/*/Cargo.toml; do
        set -- "$@" -p "$(sed -n '/^name = /{s/.*"\(.*\)"/\1/p;q}' "$manifest")"
    done
    cargo clean --locked --profile "$profile" --target "$target" "$@"
}

build() {
    compile
    # The folder of the profile `dev` has another name.
    case $profile in
    dev) folder=debug ;;
    *) folder=$profile ;;
    esac
    mkdir -p "$out"
    for binary in vc-scheduler vcsim kubectl-vc; do
        cp "${CARGO_TARGET_DIR:-target}/$target/$folder/$binary" "$out/"
        # Names of functions stay: CPU profiles are made of them.
        "${tools}strip" --strip-debug "$out/$binary"
    done
    # It must run without any library, and be what was built.
    if readelf -d "$out/vc-scheduler" "$out/vcsim" "$out/kubectl-vc" | grep NEEDED; then
        fail "a binary needs these libraries, the image has none" "find the dependency that links them"
    fi
    # Programs for another machine are not tried.
    [ -z "$tools" ] || return 0
    "$out/vc-scheduler" --version | grep . && "$out/vcsim" --help | grep . >/dev/null ||
        fail "a binary says nothing: it is a stub" "cargo has not seen the code that followed: remove target"
}

usage="deploy/build.sh OUT [CARGO_PROFILE], --stubs DIR, or --dependencies [CARGO_PROFILE]"
out=${1:?usage: $usage}
profile=${2:-release}
case $out in
--stubs) stubs "${2:?usage: $usage}" ;;
--dependencies)
    prepare
    dependencies
    ;;
-*) fail "unknown option $out" "$usage" ;;
*)
    prepare
    check_stubs
    build
    ;;
esac
