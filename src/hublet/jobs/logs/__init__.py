"""What a job printed, and how it is followed.

One file for each job, which only grows. A line is `<microseconds since the epoch> <text>`.
"""
