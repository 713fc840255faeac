"""Who wrote something, as threads show them."""
