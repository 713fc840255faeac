"""Content that does not lie in git: files in a folder, each under the SHA-256 of its bytes."""
