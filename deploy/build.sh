#!/bin/sh
# Builds both binaries, static, and puts them into the given folder: what the Dockerfile does, and
# what can be done where there is no container engine (docs/spec/rust-ecosystem.md 16).
#
#   deploy/build.sh OUT [CARGO_PROFILE]
set -eu
cd "$(dirname "$0")/.."
out=${1:?usage: deploy/build.sh OUT [CARGO_PROFILE]}
profile=${2:-release}
machine=$(uname -m)
target=$machine-unknown-linux-musl
# The plain compiler builds ring and mimalloc for musl too.
export "CC_${machine}_unknown_linux_musl=gcc"
sysroot=$(rustc --print sysroot)
# Not asked of the network again when it is there.
[ -d "$sysroot/lib/rustlib/$target/lib" ] || rustup target add "$target" || {
    echo "deploy/build.sh: no standard library for $target" >&2
    echo "hint: install Rust with rustup, or the musl target with your package manager" >&2
    exit 1
}
cargo build --locked --profile "$profile" --target "$target" -p vc-scheduler -p vc-sim \
    --bin vc-scheduler --bin vcsim
# The folder of the profile `dev` has another name.
case $profile in
dev) folder=debug ;;
*) folder=$profile ;;
esac
mkdir -p "$out"
for binary in vc-scheduler vcsim; do
    cp "${CARGO_TARGET_DIR:-target}/$target/$folder/$binary" "$out/"
    # Names of functions stay: CPU profiles are made of them.
    strip --strip-debug "$out/$binary"
done
# It must run without any library, and be what was built.
if readelf -d "$out/vc-scheduler" "$out/vcsim" | grep NEEDED; then
    echo "deploy/build.sh: a binary needs libraries, the image has none" >&2
    exit 1
fi
"$out/vc-scheduler" --version
