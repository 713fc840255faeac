"""Container registry: the OCI Distribution protocol on container repositories."""
