"""Mails that tell users of what happened."""
