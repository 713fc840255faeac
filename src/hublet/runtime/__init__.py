"""Runtime of jobs: the supervisor, the runners that execute attempts, and what those need."""
