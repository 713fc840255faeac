"""Users: their accounts, passwords, followers and public profiles."""
