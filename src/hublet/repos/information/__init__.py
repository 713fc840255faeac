"""What is known of one repository, and whether somebody may reach it."""
