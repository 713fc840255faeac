"""Jobs: the record, its stages, requests, schedules, logs and metrics; `runtime` runs them."""
