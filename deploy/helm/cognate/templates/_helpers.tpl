{{- define "cognate.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "cognate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "cognate.labels" -}}
{{ include "cognate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "cognate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "cognate.keysSecret" -}}
{{- .Values.keys.existingSecret | default (printf "%s-keys" (include "cognate.name" .)) -}}
{{- end }}

{{/* The key lines in force, in base64: those given, or those of the secret that is there. */}}
{{- define "cognate.keys" -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "cognate.keysSecret" .) -}}
{{- if .Values.keys.lines -}}
{{ printf "%s\n" (join "\n" .Values.keys.lines) | b64enc }}
{{- else if $there -}}
{{ index $there.data "keys" }}
{{- else -}}
{{ fail "keys: run `cognate keygen ID` and give its second line in keys.lines, or name a secret in keys.existingSecret, or let everybody in by keys.enabled=false" }}
{{- end -}}
{{- end }}

{{/* A value as the service reads it from a variable. Numbers come as floating point, which would be
     written as 1e+07. */}}
{{- define "cognate.setting" -}}
{{- if kindIs "slice" . -}}{{ join "," . }}
{{- else if and (kindIs "float64" .) (eq (floor .) .) -}}{{ int64 . }}
{{- else -}}{{ . }}
{{- end -}}
{{- end }}

{{- define "cognate.settings" -}}
{{- range $key, $value := .Values.settings }}
COGNATE_{{ upper $key }}: {{ include "cognate.setting" $value | quote }}
{{- end }}
{{- if .Values.keys.enabled }}
COGNATE_KEYS_FILE: /etc/cognate/keys
{{- else }}
COGNATE_ALLOW_NO_AUTH: "true"
{{- end }}
{{- if include "cognate.dataClaim" . }}
COGNATE_DATA: /data
{{- end }}
{{- with .Values.backups }}
{{- if .schedule }}
COGNATE_BACKUPS: /backups
COGNATE_BACKUPS_KEPT: {{ int .kept | quote }}
{{- end }}
{{- end }}
{{- with .Values.adminPort }}
COGNATE_ADMIN_LISTEN: {{ printf "0.0.0.0:%d" (int .) | quote }}
{{- end }}
{{- with .Values.models.serve }}
{{- $files := list }}
{{- range . }}{{ $files = append $files (printf "%s=/models/%s" .name .file) }}{{ end }}
COGNATE_MODEL: {{ join "," $files | quote }}
{{- end }}
{{- end }}

{{- define "cognate.claim" -}}
{{- if .Values.models.volume.existingClaim -}}{{ .Values.models.volume.existingClaim }}
{{- else if .Values.models.volume.create -}}{{ include "cognate.name" . }}-models
{{- end -}}
{{- end }}

{{/* The claim of the collections, if they outlive a pod. */}}
{{- define "cognate.dataClaim" -}}
{{- if .Values.collections.existingClaim -}}{{ .Values.collections.existingClaim }}
{{- else if .Values.collections.create -}}{{ include "cognate.name" . }}-data
{{- end -}}
{{- end }}

{{/* The claim of the copies of the collections. */}}
{{- define "cognate.backupsClaim" -}}
{{- if .Values.backups.existingClaim -}}{{ .Values.backups.existingClaim }}
{{- else if .Values.backups.create -}}{{ include "cognate.name" . }}-backups
{{- end -}}
{{- end }}

{{/* Whether there is a volume with models. */}}
{{- define "cognate.volume" -}}
{{- if or (include "cognate.claim" .) .Values.models.fill.image -}}yes{{- end -}}
{{- end }}

{{/* The port that tells of metrics and readiness. */}}
{{- define "cognate.statePort" -}}
{{- if .Values.adminPort -}}admin{{- else -}}http{{- end -}}
{{- end }}

{{- define "cognate.guarded" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
