"""SSH gateway: a shell in a running job, `ssh <job>@ssh.<domain of jobs>`, for its owners."""
