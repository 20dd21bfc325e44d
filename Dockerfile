# syntax=docker/dockerfile:1
# The images of vc-scheduler and, as target `vcsim`, of vcsim, for linux/amd64 and linux/arm64: `make image`.
# The compiler runs on the builder's own processor and compiles for the image's.
#
# The digests of the base images are those of their manifest lists, so they hold for each platform.
# Dependabot renews them.

FROM --platform=$BUILDPLATFORM rust:1.95.0-bookworm@sha256:6258907abe69656e41cd992e0b705cdcfabcbbe3db374f92ed2d47121282d4a1 AS rust
# The toolchain that the image has: rust-toolchain.toml also asks for tools that no build needs.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /src
ARG BUILDARCH
ARG TARGETARCH
ENV MACHINE=$TARGETARCH
RUN if [ "$TARGETARCH" != "$BUILDARCH" ]; then \
        case $TARGETARCH in arm64) machine=aarch64 ;; *) machine=x86-64 ;; esac; \
        apt-get update && apt-get install -y --no-install-recommends \
            gcc-$machine-linux-gnu libc6-dev-$TARGETARCH-cross && rm -rf /var/lib/apt/lists/*; \
    fi

# The workspace without its code. This runs when any file changes; what it hands on changes only with
# a manifest, Cargo.lock or the script.
FROM rust AS stubs
COPY . .
RUN deploy/build.sh --stubs /stubs

# Both binaries, static. What they depend on is a layer of its own: a change of our own code does not
# compile it again, here or wherever layers are cached.
FROM rust AS build
COPY --from=stubs /stubs .
RUN deploy/build.sh --dependencies
COPY . .
# Behind the dependencies, which they do not change. `make image` gives them.
ARG VC_GIT_SHA=unknown
ARG VC_BUILT_AT=unknown
ENV VC_GIT_SHA=$VC_GIT_SHA VC_BUILT_AT=$VC_BUILT_AT
RUN deploy/build.sh /out

# No shell, no libraries; a CA bundle for load sources that are asked over HTTPS.
FROM gcr.io/distroless/static-debian12:nonroot@sha256:d093aa3e30dbadd3efe1310db061a14da60299baff8450a17fe0ccc514a16639 AS base
ARG VERSION=unknown
ARG VC_GIT_SHA=unknown
ARG VC_BUILT_AT=unknown
LABEL org.opencontainers.image.source="https://github.com/vc-scheduler/vc-scheduler" \
      org.opencontainers.image.url="https://github.com/vc-scheduler/vc-scheduler" \
      org.opencontainers.image.documentation="https://github.com/vc-scheduler/vc-scheduler/tree/main/docs" \
      org.opencontainers.image.vendor="The vc-scheduler authors" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$VC_GIT_SHA" \
      org.opencontainers.image.created="$VC_BUILT_AT"
COPY LICENSE THIRD_PARTY_NOTICES.txt /licenses/
# A numeric user, so that runAsNonRoot can be checked without a passwd file.
USER 65532:65532

# vcsim, and the scheduler that `vcsim demo` starts.
FROM base AS vcsim
LABEL org.opencontainers.image.title="vcsim" \
      org.opencontainers.image.description="Simulator of vc-scheduler: decisions for a cluster, policy tests, an embedded API server"
COPY --from=build /out/vcsim /out/vc-scheduler /
ENTRYPOINT ["/vcsim"]

FROM base AS vc-scheduler
LABEL org.opencontainers.image.title="vc-scheduler" \
      org.opencontainers.image.description="A Kubernetes batch scheduler, drop-in for Volcano's vc-scheduler"
COPY --from=build /out/vc-scheduler /
ENTRYPOINT ["/vc-scheduler"]
