"""Token revocation (RFC 7009): an app gives back what it got."""
