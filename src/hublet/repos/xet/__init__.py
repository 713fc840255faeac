"""Xet: the content-addressed storage (CAS) as the public clients speak to it."""
