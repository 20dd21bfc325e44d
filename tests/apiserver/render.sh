#!/bin/sh
# Writes deploy/manifests: the chart, rendered by helm with its defaults and the namespace.
# With --check: compares instead, exit 1 when they differ.
# HELM is the helm to use, default target/apiserver/helm (README.md beside this file).
set -eu
cd "$(dirname "$0")/../.."
helm=${HELM:-target/apiserver/helm}
manifests=deploy/manifests
rendered=$(mktemp -d)
trap 'rm -rf "$rendered"' EXIT

"$helm" lint --quiet --strict deploy/chart
"$helm" template vc-scheduler deploy/chart --namespace volcano-system --set namespace.create=true \
    --output-dir "$rendered" >/dev/null
new=$rendered/vc-scheduler/templates
sed -i '${/^$/d}' "$new"/*.yaml

# The ConfigMap has what docs/configuration.md calls the chart's file.
sed -n '/volcano-scheduler.conf: |/,$p' "$new/20-config.yaml" | sed '1d; s/^    //' >"$rendered/conf"
if ! diff -u config/volcano-scheduler.conf "$rendered/conf"; then
    echo "render.sh: the value conf of deploy/chart differs from config/volcano-scheduler.conf" >&2
    exit 1
fi

if [ "${1:-}" = --check ]; then
    if ! diff -ru "$manifests" "$new"; then
        echo "render.sh: $manifests differs from the rendered chart" >&2
        echo "hint: tests/apiserver/render.sh writes it" >&2
        exit 1
    fi
    exit 0
fi
mkdir -p "$manifests"
rm -f "$manifests"/*.yaml
cp "$new"/*.yaml "$manifests"/
