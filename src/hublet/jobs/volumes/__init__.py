"""What volumes become on this machine before an attempt, and what is kept of them after it."""
