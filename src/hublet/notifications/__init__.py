"""Notifications: who is notified of what, in the inbox and by mail, and what users prefer."""
