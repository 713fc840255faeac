"""Pages of jobs: lists, one job with its log, forms, schedules."""
