"""Recipients of notifications: who gets an event in the inbox and by mail."""
