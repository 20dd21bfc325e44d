# Both binaries, static, in an empty image (docs/spec/rust-ecosystem.md 16).
FROM rust:1-bookworm AS build
# The plain compiler builds ring and mimalloc for musl too.
ENV CC_x86_64_unknown_linux_musl=gcc CC_aarch64_unknown_linux_musl=gcc
RUN rustup target add "$(uname -m)-unknown-linux-musl"
WORKDIR /src
COPY . .
ARG VC_GIT_SHA=unknown
ARG VC_BUILT_AT=unknown
ENV VC_GIT_SHA=$VC_GIT_SHA VC_BUILT_AT=$VC_BUILT_AT
RUN target="$(uname -m)-unknown-linux-musl" \
 && cargo build --release --locked --target "$target" -p vc-scheduler -p vc-sim \
      --bin vc-scheduler --bin vcsim \
 && mkdir /out \
 && cp "target/$target/release/vc-scheduler" "target/$target/release/vcsim" /out/ \
 && strip /out/vc-scheduler /out/vcsim

FROM scratch
COPY --from=build /out/vc-scheduler /out/vcsim /
# A numeric user, so that runAsNonRoot can be checked without a passwd file.
USER 65532:65532
ENTRYPOINT ["/vc-scheduler"]
