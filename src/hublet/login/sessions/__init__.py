"""Browsers that are signed in: begun, looked up, renewed, listed and ended."""
