"""A shell in a job that runs: `ssh <job>@ssh.<domain of jobs>`, for those whose job it is."""
