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
# Every value has its effect: with all of these set, each line is there that was not before.
everything --namespace elsewhere --set standalone=true,crds.install=true,namespace.create=true \
    --set image.repository=example.com/vc,image.tag=v9,image.pullPolicy=Always \
    --set 'imagePullSecrets[0].name=pull-secret' --set leaderElection.enabled=true \
    --set leaderElection.resourceName=other,leaderElection.resourceNamespace=kept \
    --set logLevel=7,conf=of-ours,resources.limits.memory=7Gi,nodeSelector.pool=control \
    --set 'env[0].name=GODEBUG,tolerations[0].key=key-of-ours' --set-json 'affinity={"nodeAffinity":{}}' \
    --set priorityClassName=of-nodes,podAnnotations.team=batch,podLabels.part=control \
    --set serviceAccount.name=scheduler-account,serviceAccount.annotations.role=scheduler \
    --set podSecurityContext.runAsUser=1234,securityContext.procMount=Default,replicas=2 \
    --set metrics.port=9090,health.port=9091,podDisruptionBudget.maxUnavailable=7 \
    --set serviceMonitor.interval=77s,serviceMonitor.labels.release=monitor \
    --set prometheusRule.labels.rules=ours,dashboard.labels.folder=ours >"$rendered/values.yaml"
# And without these, each line is gone.
everything --set priorityClassName=,metrics.enabled=false,metrics.scrapeAnnotations=false \
    --set serviceMonitor.enabled=false,prometheusRule.enabled=false,dashboard.enabled=false \
    --set podDisruptionBudget.enabled=false,leaderElection.enabled=true,replicas=2 \
    >"$rendered/without.yaml"
has() { grep -q -F -e "$1" "$rendered/$2.yaml"; }
effect() {
    if ! has "$1" "$2" || has "$1" "$3"; then
        echo "render.sh: a value of the chart has no effect: $1" >&2
        exit 1
    fi
}
while read -r line; do effect "$line" values everything; done <<'LINES'
--bare-pods=schedule
kind: CustomResourceDefinition
kind: Namespace
image: "example.com/vc:v9"
imagePullPolicy: Always
name: pull-secret
- --leader-elect=true
--leader-elect-resource-name=other
--leader-elect-resource-namespace=kept
-v=7
of-ours
memory: 7Gi
pool: control
name: GODEBUG
key: key-of-ours
nodeAffinity: {}
priorityClassName: of-nodes
team: batch
part: control
serviceAccountName: scheduler-account
role: scheduler
runAsUser: 1234
procMount: Default
replicas: 2
--listen-address=:9090
--healthz-address=:9091
maxUnavailable: 7
interval: 77s
release: monitor
rules: ours
folder: ours
LINES
while read -r line; do effect "$line" values without; done <<'LINES'
priorityClassName
--enable-metrics
prometheus.io/scrape
kind: ServiceMonitor
kind: PrometheusRule
grafana_dashboard
kind: PodDisruptionBudget
LINES
# What helm prints after an installation tells the two kinds of cluster apart.
told() { "$helm" install vc-scheduler deploy/chart --dry-run=client "$@" | sed -n '/^NOTES:/,$p'; }
if ! told | grep -q "with or without a PodGroup" ||
    ! told --set standalone=false,crds.install=false | grep -q "must be there already"; then
    echo "render.sh: the notes of the chart do not fit its values" >&2
    exit 1
fi
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
