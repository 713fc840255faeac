"""Which tools a user chose for assistants."""
