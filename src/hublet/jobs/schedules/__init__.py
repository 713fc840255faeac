"""Scheduled jobs: jobs that start by a cron expression."""
