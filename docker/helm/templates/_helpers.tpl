{{- define "cloneyard.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "cloneyard.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "cloneyard.selector" -}}
app.kubernetes.io/name: cloneyard
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "cloneyard.labels" -}}
{{ include "cloneyard.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "cloneyard.secret" -}}
{{ required "existingSecret has to name a Secret with SECRET_KEY and DATABASE_URL" .Values.existingSecret }}
{{- end }}

{{- define "cloneyard.claim" -}}
{{ .Values.logs.existingClaim | default (printf "%s-logs" (include "cloneyard.name" .)) }}
{{- end }}

{{/* Settings, then secrets. A new ReplicaSet follows each change of the settings. */}}
{{- define "cloneyard.environment" -}}
envFrom:
  - configMapRef:
      name: {{ include "cloneyard.name" . }}-settings
  - secretRef:
      name: {{ include "cloneyard.secret" . }}
{{- end }}

{{/* As docker/compose.yaml has it. 999 is the uid of `cloneyard` in the image. */}}
{{- define "cloneyard.podSecurity" -}}
runAsNonRoot: true
runAsUser: 999
runAsGroup: 999
fsGroup: 999
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "cloneyard.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}
