"""Pages of the files of repositories with git: folders, files, commits, comparisons, feeds."""
