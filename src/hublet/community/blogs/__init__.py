"""Community blogs: articles of users and organizations."""
