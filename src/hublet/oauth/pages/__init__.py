"""Pages of OAuth in a browser: one's own apps, connected apps, device codes, signing out."""
