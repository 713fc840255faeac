{{- define "hublet.labels" -}}
app.kubernetes.io/name: hublet
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "hublet.selector" -}}
app.kubernetes.io/name: hublet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "hublet.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "hublet.secret" -}}
{{ required "existingSecret names the Secret with HUBLET_DATABASE_URL and HUBLET_KEYS_RING" .Values.existingSecret }}
{{- end }}

{{- define "hublet.jobsNamespace" -}}
{{ .Values.jobs.namespace | default .Release.Namespace }}
{{- end }}

{{- define "hublet.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "hublet.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "hublet.volumes" -}}
- name: tmp
  emptyDir: {}
- name: data
{{- if .Values.storage.url }}
  emptyDir:
    sizeLimit: {{ add .Values.storage.cacheBytes .Values.storage.uploadBytes | quote }}
{{- else }}
  persistentVolumeClaim:
    claimName: {{ .Values.storage.volume.existingClaim | default (printf "%s-data" .Release.Name) }}
{{- end }}
{{- end }}
