"""The bytes of large files, up and down, at addresses that need no token."""
