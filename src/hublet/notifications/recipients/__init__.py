"""Recipients: from an event to the inboxes and mails of those who want to hear of it."""
