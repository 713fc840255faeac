"""Threads of all kinds: comments, mentions, participants and muting."""
