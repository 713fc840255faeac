"""What lies in a revision: folders, files, and the commits that led to it."""
