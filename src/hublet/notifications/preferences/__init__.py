"""What a user wants to hear of, in the inbox and by mail."""
