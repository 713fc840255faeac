"""Token introspection (RFC 7662): an app asks whether what it got still works."""
