"""Client metadata (RFC 7591): apps that describe themselves, in a document on the web or when they
register.
"""
