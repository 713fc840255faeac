"""Authorization endpoint: checks a request, asks the person for consent, sends a code to the app."""
