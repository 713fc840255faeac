"""Finding things: lists of repositories, search, people and organizations."""
