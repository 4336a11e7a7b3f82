{{- define "sandbox-broker.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough that the longest name made of it, with -engine-tls behind, is a DNS label. */}}
{{- define "sandbox-broker.fullname" -}}
{{- $name := include "sandbox-broker.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* A list of the chart and a component: broker, engine or redis. */}}
{{- define "sandbox-broker.selector" -}}
{{- $chart := index . 0 -}}
app.kubernetes.io/name: {{ include "sandbox-broker.name" $chart }}
app.kubernetes.io/instance: {{ $chart.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "sandbox-broker.labels" -}}
{{- $chart := index . 0 -}}
{{ include "sandbox-broker.selector" . }}
app.kubernetes.io/version: {{ $chart.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $chart.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $chart.Chart.Name $chart.Chart.Version | replace "+" "_" }}
{{- with $chart.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "sandbox-broker.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sandbox-broker.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "sandbox-broker.secretName" -}}
{{- default (include "sandbox-broker.fullname" .) .Values.existingSecret -}}
{{- end -}}

{{- define "sandbox-broker.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A duration of the broker's configuration in whole seconds, rounded up. */}}
{{- define "sandbox-broker.seconds" -}}
{{- $count := regexFind "^[0-9]+" . | int64 -}}
{{- $unit := regexReplaceAll "^[0-9]+" . "" -}}
{{- if eq $unit "ms" -}}
{{- div (add $count 999) 1000 -}}
{{- else -}}
{{- mul $count (get (dict "s" 1 "m" 60 "h" 3600) $unit) -}}
{{- end -}}
{{- end -}}

{{/* What a stop may take: the pause in which no request is sent any more, the drain, and room for the process to end. */}}
{{- define "sandbox-broker.grace" -}}
{{- $drain := include "sandbox-broker.seconds" .Values.config.shutdown.drainTimeout | int64 -}}
{{- add .Values.preStopSeconds $drain .Values.terminationMarginSeconds -}}
{{- end -}}

{{- define "sandbox-broker.isMemory" -}}
{{- if eq "memory" (dig "store" "type" "" .Values.config | default "") -}}true{{- end -}}
{{- end -}}

{{/* Pods of this chart keep to these; the bundled engine is the exception. */}}
{{- define "sandbox-broker.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}
