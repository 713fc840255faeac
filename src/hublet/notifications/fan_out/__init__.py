"""From a fact to the inboxes and mails of those who want to hear of it."""
