{{- define "sandbox-broker.engineHost" -}}
{{- if eq .Values.engine.mode "bundled" -}}
{{- printf "%s-engine.%s.svc" (include "sandbox-broker.fullname" .) .Release.Namespace -}}
{{- else if eq .Values.engine.mode "remote" -}}
{{- .Values.engine.remote.host -}}
{{- else -}}
{{- .Values.engine.node.address -}}
{{- end -}}
{{- end -}}

{{/* Labels of containers and keys in Redis are told apart by it, so that two releases may share an engine. */}}
{{- define "sandbox-broker.deployment" -}}
{{- $whole := printf "%s.%s" .Release.Namespace (include "sandbox-broker.fullname" .) -}}
{{- if le (len $whole) 63 -}}
{{- $whole -}}
{{- else -}}
{{- printf "%s-%s" ($whole | trunc 54) (sha256sum $whole | trunc 8) -}}
{{- end -}}
{{- end -}}

{{/* config.yaml: what follows from the engine's mode and the store, and over it what the values say. */}}
{{- define "sandbox-broker.config" -}}
{{- $host := include "sandbox-broker.engineHost" . -}}
{{- $docker := dict -}}
{{- /* Urls of sandboxes on a network name their own addresses. */ -}}
{{- if ne "network" (dig "runtime" "docker" "address" "" .Values.config | default "") -}}
{{- $docker = dict "advertiseHost" $host "probeHost" $host -}}
{{- end -}}
{{- if eq .Values.engine.mode "node" -}}
{{- $_ := set $docker "socketPath" "/var/run/docker.sock" -}}
{{- $_ := set $docker "bindHost" $host -}}
{{- else -}}
{{- $tls := dict "ca" "/etc/engine-tls/ca.pem" "cert" "/etc/engine-tls/cert.pem" "key" "/etc/engine-tls/key.pem" -}}
{{- $_ := set $docker "host" $host -}}
{{- $_ := set $docker "port" (ternary 2376 (int .Values.engine.remote.port) (eq .Values.engine.mode "bundled")) -}}
{{- $_ := set $docker "tls" $tls -}}
{{- if eq .Values.engine.mode "bundled" -}}
{{- $_ := set $docker "bindHost" "0.0.0.0" -}}
{{- end -}}
{{- end -}}
{{- $own := dict "deployment" (include "sandbox-broker.deployment" .) "runtime" (dict "docker" $docker) -}}
{{- if .Values.redis.bundled -}}
{{- $url := printf "redis://:${REDIS_PASSWORD}@%s-redis:6379/0" (include "sandbox-broker.fullname" .) -}}
{{- $_ := set $own "store" (dict "type" "redis" "url" $url) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.config)) -}}
{{- end -}}

{{/* The variables that the configuration names, as JSON: name to whether the secret may lack it. */}}
{{- define "sandbox-broker.variables" -}}
{{- $text := include "sandbox-broker.config" . | replace "$${" "" -}}
{{- $found := dict -}}
{{- range regexFindAll "\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-)?" $text -1 -}}
{{- $name := . | trimPrefix "${" | trimSuffix ":-" -}}
{{- $_ := set $found $name (and (hasSuffix ":-" .) (dig $name true $found)) -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- $_ := unset $found .name -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}
