"""SCIM protocol (RFC 7644) on the libraries scim2-models and scim2-server."""
