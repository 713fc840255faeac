"""What users are told: the inbox, who is told what, preferences, mail."""
