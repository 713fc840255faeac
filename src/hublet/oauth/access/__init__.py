"""Access: a permission in use, with the tokens that were issued from it."""
