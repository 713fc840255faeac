"""Files without git: what lies in buckets and containers, one row for each path."""
