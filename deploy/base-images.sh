#!/bin/sh
# Prints the base images of the Dockerfile by digest, one `ARG=IMAGE:TAG@sha256:DIGEST` a line. The registry
# is asked through docker, so that a release says exactly what it was built on.
#
#   deploy/base-images.sh
set -eu
cd "$(dirname "$0")/.."

sed -n 's/^ARG \([A-Z]*_IMAGE\)=\(.*\)$/\1 \2/p' Dockerfile | while read -r argument image; do
    digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}') || digest=
    case $digest in
    sha256:*) echo "$argument=$image@$digest" ;;
    *)
        echo "deploy/base-images.sh: no digest for $image" >&2
        echo "hint: can docker reach its registry? Or set SKIP_DIGESTS=1 to build on the tag" >&2
        exit 1
        ;;
    esac
done
