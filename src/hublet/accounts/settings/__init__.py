"""Settings of the caller's own account: profile, password, e-mail addresses, SSH keys."""
