"""Device codes (RFC 8628): a person allows an app with a short code, on another device."""
