"""Login in a browser: passwords, passkeys, sessions."""
