#!/bin/sh
# Builds all parts of a release with one version, in target/release-VERSION:
#
#   vc-scheduler-VERSION-linux-ARCH.tar.gz   the programs, static, with licence and notices, and the script by
#                                            which kubectl completes `kubectl vc`
#   vc.yaml                                  manifest of `kubectl vc` for krew
#   vc-scheduler-VERSION.tgz                 the chart, which names the images of this version
#   vc-scheduler-VERSION.yaml                its manifests with default values, for kubectl
#   *.cdx.json                               software bills of material (CycloneDX)
#   THIRD_PARTY_NOTICES.txt, LICENSE
#   base-images.txt                          base images of the images, by digest (Dockerfile)
#   SHA256SUMS                               checksums of all of them
#
#   deploy/release.sh VERSION
#
# and the images REGISTRY/vc-scheduler:VERSION and REGISTRY/vcsim:VERSION, where docker can be reached.
#
# Variables:
#   DOWNLOADS     where the archives will be, default the release of this version on GitHub
#   REGISTRY      of the images, default ghcr.io/vc-scheduler
#   MACHINES      default "amd64 arm64"; one without a C compiler is left out with a message
#   PLATFORMS     of the images, default linux/amd64,linux/arm64
#   PUSH=1        pushes the images; without it they stay in docker, for the platform of this machine only
#   DOCKER_FLAGS  more arguments of docker buildx build
#   HELM          default target/apiserver/helm (`make apiserver`)
#   PROFILE       of cargo, default release
#   DIRTY=1       builds a working tree with changes, for a trial
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "deploy/release.sh: $1" >&2
    echo "hint: $2" >&2
    exit 1
}

version=${1:-}
registry=${REGISTRY:-ghcr.io/vc-scheduler}
helm=${HELM:-target/apiserver/helm}
out=target/release-$version
skipped=

skip() {
    echo "deploy/release.sh: not built: $1" >&2
    skipped="$skipped
  $1"
}

# Everything has the one version before anything is built.
check_version() {
    echo "$version" | grep -Eq '^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$' ||
        fail "no version: '$version'" "deploy/release.sh VERSION, for example 0.1.0"
    crate=$(sed -n '/^version = /{s/.*"\(.*\)"/\1/p;q}' Cargo.toml)
    [ "$crate" = "$version" ] ||
        fail "Cargo.toml has version $crate, not $version" "change it, and run cargo update --workspace"
    for key in version appVersion; do
        chart=$(sed -n "s/^$key: //p" deploy/chart/Chart.yaml)
        [ "$chart" = "$version" ] ||
            fail "deploy/chart/Chart.yaml has $key $chart, not $version" \
                "change it, and run tests/apiserver/render.sh"
    done
    grep -q "^## \[$version\]" CHANGELOG.md ||
        fail "CHANGELOG.md has no section [$version]" "move the entries of Unreleased there"
    [ -n "${DIRTY:-}" ] || [ -z "$(git status --porcelain)" ] ||
        fail "the working tree has changes" "commit them, or set DIRTY=1 for a trial"
    [ -x "$helm" ] || fail "no helm: $helm" "make apiserver, or set HELM"
}

binaries() {
    VC_GIT_SHA=$(git describe --always --dirty --abbrev=40 --exclude '*')
    VC_BUILT_AT=$(date -u +%Y-%m-%dT%H:%M:%SZ)
    export VC_GIT_SHA VC_BUILT_AT
    for machine in ${MACHINES:-amd64 arm64}; do
        name=vc-scheduler-$version-linux-$machine
        if ! has_compiler "$machine"; then
            skip "$name.tar.gz: no C compiler for $machine (deploy/build.sh says which)"
            continue
        fi
        MACHINE=$machine deploy/build.sh "$out/$name" "${PROFILE:-release}"
        cp LICENSE THIRD_PARTY_NOTICES.txt deploy/kubectl_complete-vc "$out/$name/"
        tar -C "$out" --owner=0 --group=0 -czf "$out/$name.tar.gz" "$name"
        rm -r "${out:?}/$name"
    done
}

has_compiler() {
    case $1-$(uname -m) in
    amd64-x86_64 | arm64-aarch64) ;;
    amd64-*) command -v x86_64-linux-gnu-gcc >/dev/null ;;
    arm64-*) command -v aarch64-linux-gnu-gcc >/dev/null ;;
    esac
}

chart() {
    copy=$out/chart
    cp -r deploy/chart "$copy"
    sed -i "s|^  repository: vc-scheduler$|  repository: $registry/vc-scheduler|" "$copy/values.yaml"
    "$helm" package "$copy" --version "$version" --app-version "$version" --destination "$out" >/dev/null
    "$helm" template vc-scheduler "$copy" --namespace volcano-system --set namespace.create=true \
        --skip-tests >"$out/vc-scheduler-$version.yaml"
    rm -r "$copy"
    grep -q "image: \"$registry/vc-scheduler:$version\"" "$out/vc-scheduler-$version.yaml" ||
        fail "the manifests do not name the image $registry/vc-scheduler:$version" \
            "see values.yaml of the chart, image"
}

# The plugin of kubectl: krew takes the program out of the archives.
krew() {
    downloads=${DOWNLOADS:-https://github.com/vc-scheduler/vc-scheduler/releases/download/v$version}
    {
        cat <<END
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata: {name: vc}
spec:
  version: v$version
  homepage: https://github.com/vc-scheduler/vc-scheduler
  shortDescription: Ask the scheduler why jobs wait
  description: |
    Asks vc-scheduler why jobs wait, what would let them start, who is before them,
    and what would happen with other nodes, queues or limits.
  caveats: |
    kubectl completes it once kubectl_complete-vc is on the PATH, too:
      cp ~/.krew/store/vc/v*/kubectl_complete-vc ~/.krew/bin/
  platforms:
END
        for archive in "$out/vc-scheduler-$version"-linux-*.tar.gz; do
            [ -e "$archive" ] || continue
            file=$(basename "$archive")
            folder=${file%.tar.gz}
            sum=$(sha256sum "$archive" | cut -d ' ' -f 1)
            cat <<END
  - selector: {matchLabels: {os: linux, arch: ${folder##*-}}}
    uri: $downloads/$file
    sha256: $sum
    bin: kubectl-vc
    files:
    - {from: $folder/kubectl-vc, to: .}
    - {from: $folder/kubectl_complete-vc, to: .}
    - {from: $folder/LICENSE, to: .}
END
        done
    } >"$out/vc.yaml"
}

documents() {
    make --no-print-directory sbom
    cp target/sbom/*.cdx.json LICENSE THIRD_PARTY_NOTICES.txt "$out/"
    grep -o '[^ ]*@sha256:[0-9a-f]*' Dockerfile >"$out/base-images.txt"
}

images() {
    if ! docker info >/dev/null 2>&1; then
        skip "images: docker is not installed, or its engine does not answer"
        return
    fi
    for image in vc-scheduler vcsim; do
        set -- --target "$image" --tag "$registry/$image:$version" --build-arg "VERSION=$version" \
            --build-arg "VC_GIT_SHA=$VC_GIT_SHA" --build-arg "VC_BUILT_AT=$VC_BUILT_AT"
        if [ -n "${PUSH:-}" ]; then
            set -- "$@" --push --platform "${PLATFORMS:-linux/amd64,linux/arm64}" \
                --provenance=mode=max --sbom=true --metadata-file "$out/$image.image.json"
        else
            set -- "$@" --load
        fi
        # shellcheck disable=SC2086 # several arguments
        docker buildx build "$@" ${DOCKER_FLAGS:-} .
    done
}

check_version
rm -rf "$out"
mkdir -p "$out"
binaries
krew
chart
documents
images
(cd "$out" && sha256sum -- * >SHA256SUMS)
echo "release $version in $out:"
sed 's/^[0-9a-f]*  /  /' "$out/SHA256SUMS"
[ -z "$skipped" ] || echo "not built:$skipped"
