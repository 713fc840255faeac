"""Pages of a person's account: profile, addresses, tokens, keys; and the ways into one."""
