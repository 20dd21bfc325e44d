{{- define "part" -}}{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end }}

{{- /* Of every object: the release and the chart, or only the release when it has the chart's name in it. */ -}}
{{- define "name" -}}
{{- $part := include "part" . }}
{{- $name := ternary .Release.Name (printf "%s-%s" .Release.Name $part) (contains $part .Release.Name) }}
{{- .Values.fullnameOverride | default $name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "account" -}}{{ .Values.serviceAccount.name | default (include "name" .) }}{{- end }}

{{- define "leaseNamespace" -}}
{{ .Values.leaderElection.resourceNamespace | default .Release.Namespace }}
{{- end }}

{{- /* Not empty if something is served over TLS. */ -}}
{{- define "usesTls" -}}
{{- if or .Values.health.tls (and .Values.metrics.enabled .Values.metrics.tls) }}true{{ end }}
{{- end }}

{{- define "probeScheme" -}}{{ if .Values.health.tls }}, scheme: HTTPS{{ end }}{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: {{ include "part" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "version" -}}{{ .Values.image.tag | default .Chart.AppVersion }}{{- end }}

{{- /* A digest says more than a tag, which may move. */ -}}
{{- define "image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ include "version" . }}{{ end }}
{{- end }}

{{- define "labels" -}}
{{ include "selector" . }}
app.kubernetes.io/version: {{ include "version" . | trunc 63 | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Labels and annotations of an object that has none of its own. */ -}}
{{- define "metadata" -}}
labels: {{- include "labels" . | nindent 2 }}
{{- with .Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* What no schema can say: values that do not fit together. */ -}}
{{- define "check" -}}
{{- if and (not .Values.leaderElection.enabled) (gt (int .Values.replicas) 1) }}
{{- fail "replicas above 1 need leaderElection.enabled: without it all of them would schedule at the same time" }}
{{- end }}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "serviceAccount.create=false needs serviceAccount.name: the account that exists" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not .Values.metrics.enabled) }}
{{- fail "serviceMonitor.enabled needs metrics.enabled: without it there is no Service that could be scraped" }}
{{- end }}
{{- if and (include "usesTls" .) (not .Values.tls.secretName) }}
{{- fail "metrics.tls and health.tls need tls.secretName: a Secret with tls.crt and tls.key" }}
{{- end }}
{{- if and (eq (.Values.strategy.type | default "") "RollingUpdate") (not .Values.leaderElection.enabled) }}
{{- fail "strategy.type RollingUpdate needs leaderElection.enabled: without it the old and the new pod would schedule at the same time" }}
{{- end }}
{{- if and .Values.metrics.authorization (not .Values.metrics.tls) }}
{{- fail "metrics.authorization needs metrics.tls: tokens must not be sent in the clear" }}
{{- end }}
{{- if and .Values.answers.aggregated (not .Values.answers.enabled) }}
{{- fail "answers.aggregated needs answers.enabled: an APIService that nobody answers blocks the deletion of namespaces" }}
{{- end }}
{{- if and .Values.answers.caBundle (not .Values.answers.aggregated) }}
{{- fail "answers.caBundle needs answers.aggregated: it is for the APIService" }}
{{- end }}
{{- if and .Values.answers.caBundle (not (regexMatch "--answers[-_]tls[-_]cert[-_]file" (join " " .Values.extraArgs))) }}
{{- fail "answers.caBundle needs --answers-tls-cert-file in extraArgs: no CA has signed the certificate that the scheduler makes itself" }}
{{- end }}
{{- $ours := dict
  "scheduler-conf" "use the value conf"
  "scheduler-name" "use the value schedulerNames"
  "leader-elect" "use the value leaderElection.enabled"
  "leader-elect-resource-name" "use the value leaderElection.resourceName"
  "leader-elect-resource-namespace" "use the value leaderElection.resourceNamespace"
  "lock-object-namespace" "use the value leaderElection.resourceNamespace"
  "enable-healthz" "the probes need it as it is"
  "healthz-address" "use the value health.port"
  "enable-metrics" "use the value metrics.enabled"
  "listen-address" "use the value metrics.port"
  "metrics-tls" "use the value metrics.tls"
  "metrics-authorization" "use the value metrics.authorization"
  "tls-cert-file" "use the value tls.secretName"
  "tls-private-key-file" "use the value tls.secretName"
  "ca-cert-file" "use the value health.tls"
  "enable-answers" "use the value answers.enabled"
  "answers-address" "use the value answers.port"
  "answers-aggregated" "use the value answers.aggregated"
  "bare-pods" "use the value standalone"
  "v" "use the value logLevel" }}
{{- range .Values.extraArgs }}
{{- /* As flags are read: `_` is `-` in a name; -v has one dash, and its number may be right behind it. */ -}}
{{- $name := regexFind "^--[^=]+" . | trimPrefix "--" | replace "_" "-" }}
{{- if regexMatch "^-v" . }}{{ $name = "v" }}{{ end }}
{{- with get $ours $name }}
{{- fail (printf "extraArgs must not have --%s: %s" $name .) }}
{{- end }}
{{- end }}
{{- end }}
