"""What mails say, one module for each kind of them."""
