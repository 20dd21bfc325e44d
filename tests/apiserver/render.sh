#!/bin/sh
# Writes deploy/manifests: the chart, rendered by helm with its defaults and the namespace, without answers.
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
    --set answers.enabled=false --skip-tests --output-dir "$rendered" >/dev/null
new=$rendered/vc-scheduler/templates
sed -i '${/^$/d}' "$new"/*.yaml

# Everything that is off by default, and what an operator changes first: it renders as well. Without answers, so that
# their values have an effect.
everything() {
    "$helm" template vc-scheduler deploy/chart --namespace elsewhere --set replicas=1 \
        --set standalone=false --set crds.install=false --set leaderElection.enabled=false \
        --set serviceMonitor.enabled=true --set prometheusRule.enabled=true \
        --set dashboard.enabled=true --set answers.enabled=false --set 'schedulerNames={a,b}' \
        --set 'extraArgs={--schedule-period=500ms}' "$@"
}
everything >"$rendered/everything.yaml"
for wanted in "kind: ServiceMonitor" "kind: PrometheusRule" "grafana_dashboard" "leader-elect=false" \
    "scheduler-name=b" "schedule-period=500ms" "alert: VcSchedulerTwoLeaders"; do
    if ! grep -q -e "$wanted" "$rendered/everything.yaml"; then
        echo "render.sh: the chart with everything on lacks: $wanted" >&2
        exit 1
    fi
done
# The release is in another namespace than Volcano's: nothing may name that one.
if grep -n "volcano-system" "$rendered/everything.yaml" >&2; then
    echo "render.sh: a template names the namespace volcano-system, whatever the release's is" >&2
    exit 1
fi
# Every value has its effect: with all of these set, each line is there that was not before.
everything --namespace elsewhere --set standalone=true,crds.install=true,namespace.create=true \
    --set image.repository=example.com/vc,image.tag=v9,image.pullPolicy=Always \
    --set 'imagePullSecrets[0].name=pull-secret' --set leaderElection.enabled=true \
    --set leaderElection.resourceName=other,leaderElection.resourceNamespace=kept \
    --set logLevel=7,conf=text-of-conf,resources.limits.memory=7Gi,nodeSelector.pool=control \
    --set 'env[0].name=GODEBUG,tolerations[0].key=key-of-ours' --set-json 'affinity={"nodeAffinity":{}}' \
    --set priorityClassName=of-nodes,podAnnotations.team=batch,podLabels.part=control \
    --set fullnameOverride=name-of-ours,nameOverride=part-of-ours \
    --set serviceAccount.name=scheduler-account,serviceAccount.annotations.role=scheduler \
    --set podSecurityContext.runAsUser=1234,securityContext.procMount=Default,replicas=2 \
    --set metrics.tls=true,metrics.authorization=true,health.tls=true,tls.secretName=certificate-of-ours \
    --set serviceMonitor.tlsConfig.serverName=metrics-of-ours \
    --set metrics.port=9090,health.port=9091,podDisruptionBudget.maxUnavailable=7 \
    --set serviceMonitor.interval=77s,serviceMonitor.labels.release=monitor \
    --set prometheusRule.labels.rules=ours,dashboard.labels.folder=ours \
    --set prometheusRule.runbookPage=https://runbooks.example/page \
    --set serviceMonitor.scrapeTimeout=66s,serviceMonitor.relabelings[0].action=keepequal \
    --set serviceMonitor.metricRelabelings[0].action=labeldrop \
    --set commonLabels.owner=of-labels,commonAnnotations.contact=of-annotations \
    --set 'envFrom[0].configMapRef.name=more-variables' \
    --set 'extraVolumes[0].name=more-files,extraVolumeMounts[0].name=more-files' \
    --set 'extraVolumeMounts[0].mountPath=/more' \
    --set 'topologySpreadConstraints[0].maxSkew=3' \
    --set 'topologySpreadConstraints[0].topologyKey=zone-of-ours' \
    --set 'topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule' \
    --set strategy.type=RollingUpdate,strategy.rollingUpdate.maxSurge=43% \
    --set startupProbe.failureThreshold=44,livenessProbe.failureThreshold=45 \
    --set readinessProbe.failureThreshold=46 \
    --set nodeLocks.enabled=true,nodeLoads.customMetrics=true,fairshareState.enabled=true,mindCluster.enabled=true \
    --set deviceConfig.enabled=true,deviceConfig.namespace=of-devices,deviceConfig.name=config-of-ours \
    --set 'networkPolicy.enabled=true,networkPolicy.metricsFrom[0].podSelector.matchLabels.may=read' \
    --set 'networkPolicy.egress[0].ports[0].port=6443' \
    --set answers.enabled=true,answers.port=9092,answers.aggregated=true,answers.proxyFor=those-who-ask \
    --set 'networkPolicy.answersFrom[0].podSelector.matchLabels.may=ask' >"$rendered/values.yaml"
# And without these, each line is gone.
everything --set priorityClassName=,metrics.enabled=false,metrics.scrapeAnnotations=false \
    --set serviceMonitor.enabled=false,prometheusRule.enabled=false,dashboard.enabled=false \
    --set podDisruptionBudget.enabled=false,leaderElection.enabled=true,replicas=2 \
    --set serviceAccount.create=false,serviceAccount.name=scheduler-account \
    --set serviceAccount.annotations.role=scheduler --set userRoles.create=false \
    --set startupProbe=null,livenessProbe=null,readinessProbe=null \
    --set "image.digest=sha256:$(printf '%064d' 7)" >"$rendered/without.yaml"
has() { grep -q -F -e "$1" "$rendered/$2.yaml"; }
effect() {
    if ! has "$1" "$2" || has "$1" "$3"; then
        echo "render.sh: a value of the chart has no effect: $1" >&2
        exit 1
    fi
}
while read -r line; do effect "$line" values everything; done <<'LINES'
resources: [configmaps]
resources: [nodes]
resourceNames: ["config-of-ours"]
namespace: of-devices
resources: [configmaps]
namespace: mindx-dl
verbs: [list]
--bare-pods=schedule
kind: CustomResourceDefinition
kind: Namespace
image: "example.com/vc:v9"
imagePullPolicy: Always
name: pull-secret
- --leader-elect=true
--leader-elect-resource-name=other
--leader-elect-resource-namespace=kept
namespace: kept
  name: name-of-ours
app.kubernetes.io/name: part-of-ours
-v=7
text-of-conf
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
--metrics-tls=true
--metrics-authorization=true
--enable-answers=true
--answers-address=:9092
--answers-aggregated=true
kind: APIService
port: 9092
insecureSkipTLSVerify: true
name: extension-apiserver-authentication-reader
name: POD_NAMESPACE
scheduling.volcano.sh/answers
services/proxy
may: ask
--tls-cert-file=/tls/tls.crt
--tls-private-key-file=/tls/tls.key
--ca-cert-file=/tls/ca.crt
port: health, scheme: HTTPS
secretName: certificate-of-ours
serverName: metrics-of-ours
scheme: https
prometheus.io/scheme: https
bearerTokenFile: 
tokenreviews
subjectaccessreviews
maxUnavailable: 7
interval: 77s
release: monitor
rules: ours
folder: ours
runbook_url: https://runbooks.example/page#vcschedulernocycles
scrapeTimeout: 66s
action: keepequal
action: labeldrop
owner: of-labels
contact: of-annotations
name: more-variables
- name: more-files
  name: more-files
mountPath: /more
topologyKey: zone-of-ours
maxSurge: 43%
failureThreshold: 44
failureThreshold: 45
failureThreshold: 46
kind: NetworkPolicy
may: read
port: 6443
name: "those-who-ask"
LINES
while read -r line; do effect "$line" values without; done <<'LINES'
priorityClassName
--enable-metrics
prometheus.io/scrape
kind: ServiceMonitor
kind: PrometheusRule
grafana_dashboard
kind: PodDisruptionBudget
role: scheduler
startupProbe
livenessProbe
readinessProbe
aggregate-to-view
aggregate-to-edit
aggregate-to-admin
LINES
effect "@sha256:0000" without values
# Without a group nobody reaches the answers through the API server.
bindings() { "$helm" template x deploy/chart --set "answers.enabled=true,answers.proxyFor=$1" | grep -c -- "-answers-proxy$" || true; }
if [ "$(bindings somebody)" != 3 ] || [ "$(bindings "")" != 1 ]; then
    echo "render.sh: an empty answers.proxyFor is to leave the Role x-vc-scheduler-answers-proxy without a binding" >&2
    exit 1
fi
# A pod of `helm test` is not one of the scheduler's: the Service must not send requests to it.
if sed -n '/scheduled.yaml/,$p' "$rendered/values.yaml" | grep -q "name: part-of-ours$"; then
    echo "render.sh: the pod of helm test has the labels of the scheduler's pods" >&2
    exit 1
fi
# Each object has the name of the release and the chart's, or what takes their place.
while read -r release value name; do
    names=$("$helm" template "$release" deploy/chart --skip-tests \
        --set "crds.install=false,userRoles.create=false,answers.enabled=false,$value" |
        sed -n 's/^  name: //p' | sort -u)
    if [ "$names" != "$name" ]; then
        echo "render.sh: release $release with $value is to be named $name, not:" $names >&2
        exit 1
    fi
done <<'LINES'
vc-scheduler replicas=2 vc-scheduler
my-vc-scheduler replicas=2 my-vc-scheduler
batch replicas=2 batch-vc-scheduler
batch nameOverride=sched batch-sched
batch fullnameOverride=sched sched
LINES
# What helm prints after an installation tells the two kinds of cluster apart.
told() { "$helm" install vc-scheduler deploy/chart --dry-run=client "$@" | sed -n '/^NOTES:/,$p'; }
if ! told | grep -q "with or without a PodGroup" ||
    ! told --set standalone=false,crds.install=false | grep -q "must be there already" ||
    ! told --namespace ours | grep -q "Lease ours/volcano"; then
    echo "render.sh: the notes of the chart do not fit its values" >&2
    exit 1
fi
# With a CA the API server verifies the answers.
authority="-----BEGIN CERTIFICATE-----"
everything --set answers.enabled=true,answers.aggregated=true --set "answers.caBundle=$authority" \
    --set 'extraArgs={--answers-tls-cert-file=/a,--answers-tls-private-key-file=/b}' >"$rendered/verified.yaml"
effect "caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t" verified values
if has "insecureSkipTLSVerify: true" verified; then
    echo "render.sh: with answers.caBundle the API server must verify the answers" >&2
    exit 1
fi
# A misspelt value is refused, and so are values that do not fit together; the text names the remedy.
refused() {
    text=$1
    shift
    if everything "$@" >/dev/null 2>"$rendered/refusal" || ! grep -q -F -e "$text" "$rendered/refusal"; then
        echo "render.sh: the chart is to refuse $* with '$text', not:" >&2
        cat "$rendered/refusal" >&2
        exit 1
    fi
}
refused "'replica' not allowed" --set replica=2
refused "/fullnameOverride" --set fullnameOverride=Not_A_Name
refused "leaderElection.enabled" --set replicas=2
refused "serviceAccount.name" --set serviceAccount.create=false
refused "strategy.type RollingUpdate needs leaderElection" --set strategy.type=RollingUpdate
refused "/image/digest" --set image.digest=latest
refused "need tls.secretName" --set metrics.tls=true
refused "need tls.secretName" --set health.tls=true
refused "metrics.authorization needs metrics.tls" --set metrics.authorization=true
refused "answers.aggregated needs answers.enabled" --set answers.aggregated=true
refused "answers.caBundle needs answers.aggregated" --set "answers.caBundle=$authority"
refused "answers.caBundle needs --answers-tls-cert-file" --set "answers.caBundle=$authority" \
    --set answers.enabled=true,answers.aggregated=true
refused "/answers/caBundle" --set answers.enabled=true,answers.aggregated=true,answers.caBundle=TFMw
refused "serviceMonitor.enabled needs metrics.enabled" --set metrics.enabled=false
# A flag that a value sets is no extra one: the last use would win, past every check of the value.
refused "--leader-elect: use the value leaderElection.enabled" --set 'extraArgs={--leader_elect}'
refused "--v: use the value logLevel" --set 'extraArgs={-v5}'
refused "--lock-object-namespace: use the value leaderElection.resourceNamespace" \
    --set 'extraArgs={--lock-object-namespace=x}'
sed -n 's/^        - \(--*[a-z-]*\)=.*/\1/p' "$new/30-deployment.yaml" >"$rendered/flags"
if [ "$(wc -l <"$rendered/flags")" -lt 10 ]; then
    echo "render.sh: the arguments of the Deployment are not found" >&2
    exit 1
fi
while read -r flag; do
    refused "extraArgs must not have" --set "extraArgs={$flag=x}"
done <"$rendered/flags"
# The alerts do what they say; docs.rs of vc-telemetry looks at their names and labels without promtool.
if command -v promtool >/dev/null; then
    promtool test rules deploy/alerts.test.yaml >"$rendered/alerts" || {
        cat "$rendered/alerts" >&2
        exit 1
    }
fi
while read -r line; do
    if ! has "$line" everything; then
        echo "render.sh: no alert has: $line" >&2
        exit 1
    fi
done <<'LINES'
expr: sum by (queue) (volcano_pending_pods) > 0
for: 1h
rest_client_requests_total{method="GET",code=~"401|403"}
sum by (namespace, job, service) (volcano_leader) > 1
sum by (namespace, job) (increase(volcano_foreign_binds_total[10m])) > 0
or volcano_config_default_in_force > 0
max by (job, source) (time() - volcano_node_load_last_read_timestamp_seconds) > 300
LINES

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
