{{- define "name" -}}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{- end }}

{{- define "account" -}}{{ .Values.serviceAccount.name | default (include "name" .) }}{{- end }}

{{- define "leaseNamespace" -}}
{{ .Values.leaderElection.resourceNamespace | default .Release.Namespace }}
{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: vc-scheduler
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
