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

# Everything that is off by default, and what an operator changes first: it renders as well.
everything() {
    "$helm" template vc-scheduler deploy/chart --namespace elsewhere --set replicas=1 \
        --set standalone=false --set crds.install=false --set leaderElection.enabled=false \
        --set serviceMonitor.enabled=true --set prometheusRule.enabled=true \
        --set dashboard.enabled=true --set 'schedulerNames={a,b}' --set 'extraArgs={--v=5}' "$@"
}
everything >"$rendered/everything.yaml"
for wanted in "kind: ServiceMonitor" "kind: PrometheusRule" "grafana_dashboard" "leader-elect=false" \
    "scheduler-name=b" "alert: VcSchedulerTwoLeaders"; do
    if ! grep -q -e "$wanted" "$rendered/everything.yaml"; then
        echo "render.sh: the chart with everything on lacks: $wanted" >&2
        exit 1
    fi
done
# A misspelt value is refused, and so are two replicas that nobody elects.
if everything --set replica=2 >/dev/null 2>&1 || everything --set replicas=2 >/dev/null 2>&1; then
    echo "render.sh: the chart takes a value that it should refuse" >&2
    exit 1
fi

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
