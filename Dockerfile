# syntax=docker/dockerfile:1
# Both binaries, static. What is compiled once stays in the cache mounts: a change of our own code
# does not compile the dependencies again.
FROM rust:1-bookworm AS build
WORKDIR /src
COPY . .
ARG VC_GIT_SHA=unknown
ARG VC_BUILT_AT=unknown
ENV VC_GIT_SHA=$VC_GIT_SHA VC_BUILT_AT=$VC_BUILT_AT
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    deploy/build.sh /out

# No shell, no libraries; a CA bundle for load sources that are asked over HTTPS.
FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /out/vc-scheduler /out/vcsim /
# A numeric user, so that runAsNonRoot can be checked without a passwd file.
USER 65532:65532
ENTRYPOINT ["/vc-scheduler"]
