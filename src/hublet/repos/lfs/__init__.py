"""Git LFS: large files beside git, their transfer and their removal."""
