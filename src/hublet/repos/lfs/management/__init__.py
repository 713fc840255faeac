"""The large files of a repository as its writers see them: which there are, and which go."""
