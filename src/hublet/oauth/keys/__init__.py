"""Signing keys of ID tokens: made, published ahead of their use, rotated."""
