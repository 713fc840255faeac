"""How people show in a browser who they are: passwords, passkeys, sessions."""
