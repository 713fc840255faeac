"""The token endpoint and the start of a device login."""
