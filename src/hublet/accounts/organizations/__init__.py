"""Organizations: members, plans, service accounts and the audit log."""
