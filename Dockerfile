# syntax=docker/dockerfile:1
FROM rust:1-bookworm AS rust
WORKDIR /src

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
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/vc-scheduler /out/vcsim /
# A numeric user, so that runAsNonRoot can be checked without a passwd file.
USER 65532:65532
ENTRYPOINT ["/vc-scheduler"]
