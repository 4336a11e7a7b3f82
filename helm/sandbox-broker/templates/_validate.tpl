{{/* What the schema cannot say, or not clearly. Everything that is wrong is reported at once. */}}
{{- define "sandbox-broker.validate" -}}
{{- $wrong := concat (include "sandbox-broker.wrongEngine" . | fromJsonArray) (include "sandbox-broker.wrongStore" . | fromJsonArray) -}}
{{- $wrong = concat $wrong (include "sandbox-broker.wrongSecret" . | fromJsonArray) -}}
{{- if not .Values.image.repository -}}
{{- $wrong = append $wrong "image.repository: is not set; push the image of docs/deployment.md to a registry of yours, and name it here" -}}
{{- end -}}
{{- if not (dig "auth" "keys" list .Values.config) -}}
{{- $wrong = append $wrong "config.auth.keys: is empty; the broker listens for other pods, and only with a key" -}}
{{- end -}}
{{- range $key := list "commonLabels" "podLabels" -}}
{{- range $label := keys (get $.Values $key) | sortAlpha -}}
{{- if or (regexMatch "^app[.]kubernetes[.]io/(name|instance|component|version|managed-by)$" $label) (eq $label "helm.sh/chart") -}}
{{- $wrong = append $wrong (printf "%s: %s is the chart's own; selectors choose by such labels" $key $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $wrong -}}
{{- fail (printf "\nThe values cannot be used:\n  %s\n" (join "\n  " $wrong)) -}}
{{- end -}}
{{- end -}}

{{- define "sandbox-broker.wrongEngine" -}}
{{- $wrong := list -}}
{{- $mode := .Values.engine.mode -}}
{{- $docker := dig "runtime" "docker" dict .Values.config -}}
{{- range list "socketPath" "host" "port" "tls" -}}
{{- if get $docker . -}}
{{- $wrong = append $wrong (printf "config.runtime.docker.%s: is made of engine.*; set that" .) -}}
{{- end -}}
{{- end -}}
{{- $network := eq "network" (get $docker "address" | default "") -}}
{{- if eq $mode "remote" -}}
{{- with .Values.engine.remote -}}
{{- if not .host -}}{{- $wrong = append $wrong "engine.remote.host: is not set" -}}{{- end -}}
{{- if not .tlsSecret -}}
{{- $wrong = append $wrong "engine.remote.tlsSecret: is not set; whoever reaches an engine without TLS is root on its host" -}}
{{- end -}}
{{- end -}}
{{- if not (or $network (get $docker "bindHost")) -}}
{{- $wrong = append $wrong "config.runtime.docker.bindHost: is not set; it is the engine host's address on which gateways and brokers reach sandboxes" -}}
{{- end -}}
{{- else if $network -}}
{{- $wrong = append $wrong (printf "config.runtime.docker.address: network; pods do not reach the containers' own network with engine.mode %s" $mode) -}}
{{- end -}}
{{- if eq $mode "node" -}}
{{- with .Values.engine.node -}}
{{- if not .name -}}{{- $wrong = append $wrong "engine.node.name: is not set; all replicas run on the node whose engine they use" -}}{{- end -}}
{{- if not .address -}}{{- $wrong = append $wrong "engine.node.address: is not set; sandboxes are published there" -}}{{- end -}}
{{- if kindIs "invalid" .socketGroup -}}
{{- $wrong = append $wrong "engine.node.socketGroup: is not set; it is what `stat -c %g` says of the socket" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq $mode "bundled") (not .Values.config.profiles) -}}
{{- $wrong = append $wrong "config.profiles: is not set; a bundled engine has no image but those that it can pull" -}}
{{- end -}}
{{- toJson $wrong -}}
{{- end -}}

{{- define "sandbox-broker.wrongStore" -}}
{{- $wrong := list -}}
{{- $store := dig "store" dict .Values.config -}}
{{- $named := or (get $store "url") (get $store "sentinels") -}}
{{- $memory := include "sandbox-broker.isMemory" . -}}
{{- if and .Values.redis.bundled (or $named $memory) -}}
{{- $wrong = append $wrong "redis.bundled: is true, and config.store says something else; set it to false" -}}
{{- else if and $memory (gt (int .Values.replicaCount) 1) -}}
{{- $wrong = append $wrong (printf "replicaCount: %d, and config.store.type is memory, which replicas do not share; 1, or Redis" (int .Values.replicaCount)) -}}
{{- else if not (or .Values.redis.bundled $named $memory) -}}
{{- $wrong = append $wrong "config.store: names no Redis; set url or sentinels, or redis.bundled" -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if and $.Values.redis.bundled (eq .name "REDIS_PASSWORD") -}}
{{- $wrong = append $wrong "extraEnv: REDIS_PASSWORD comes from the secret, where the bundled Redis looks, too" -}}
{{- end -}}
{{- end -}}
{{- toJson $wrong -}}
{{- end -}}

{{- define "sandbox-broker.wrongSecret" -}}
{{- $wrong := list -}}
{{- if .Values.existingSecret -}}
{{- if .Values.secret -}}
{{- $wrong = append $wrong "secret: is set, and existingSecret too; one of the two" -}}
{{- end -}}
{{- else -}}
{{- range $name, $optional := include "sandbox-broker.variables" . | fromJson -}}
{{- if not (or $optional (get $.Values.secret $name)) -}}
{{- $wrong = append $wrong (printf "secret.%s: is not set, and config names ${%s}; or existingSecret" $name $name) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.redis.bundled (not (regexMatch "^[A-Za-z0-9._~-]*$" (get .Values.secret "REDIS_PASSWORD" | default ""))) -}}
{{- $wrong = append $wrong "secret.REDIS_PASSWORD: stands in a url; letters, digits and . _ ~ - only" -}}
{{- end -}}
{{- end -}}
{{- toJson $wrong -}}
{{- end -}}
