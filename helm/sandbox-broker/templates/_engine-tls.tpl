{{- define "sandbox-broker.engineTlsSecret" -}}
{{- if eq .Values.engine.mode "remote" -}}
{{- .Values.engine.remote.tlsSecret -}}
{{- else -}}
{{- default (printf "%s-engine-tls" (include "sandbox-broker.fullname" .)) .Values.engine.bundled.tlsSecret -}}
{{- end -}}
{{- end -}}

{{/*
The data of the bundled engine's own secret, as YAML: what the cluster has, else new. Nobody keeps the authority's key.
Certificates are random, so the first result is remembered while this is rendered: in `.Release`, because values are stored
with a release. With a secret of somebody else's it is nothing.
*/}}
{{- define "sandbox-broker.engineTls" -}}
{{- if not .Values.engine.bundled.tlsSecret -}}
{{- if not (hasKey .Release "engineTls") -}}
{{- $name := include "sandbox-broker.engineTlsSecret" . -}}
{{- $data := dig "data" dict (lookup "v1" "Secret" .Release.Namespace $name) -}}
{{- if not (and (get $data "ca.pem") (get $data "cert.pem") (get $data "key.pem") (get $data "server-cert.pem") (get $data "server-key.pem")) -}}
{{- $host := include "sandbox-broker.engineHost" . -}}
{{- $ca := genCA (printf "%s authority" $name | trunc 64) 3650 -}}
{{- $server := genSignedCert "engine" (list "127.0.0.1") (list $host (printf "%s.cluster.local" $host) "localhost") 3650 $ca -}}
{{- $client := genSignedCert "broker" list list 3650 $ca -}}
{{- $data = dict "ca.pem" (b64enc $ca.Cert) "cert.pem" (b64enc $client.Cert) "key.pem" (b64enc $client.Key) -}}
{{- $_ := set $data "server-cert.pem" (b64enc $server.Cert) -}}
{{- $_ := set $data "server-key.pem" (b64enc $server.Key) -}}
{{- end -}}
{{- $_ := set .Release "engineTls" $data -}}
{{- end -}}
{{- toYaml .Release.engineTls -}}
{{- end -}}
{{- end -}}
