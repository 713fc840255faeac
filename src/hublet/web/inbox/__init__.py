"""Pages of the inbox, and of what comes into it and by mail."""
