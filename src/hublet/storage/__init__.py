"""Content-addressed storage: bytes, their digests and the formats of Xet. It knows no feature."""
