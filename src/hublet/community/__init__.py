"""Discussions and pull requests, papers, posts and blogs: threads with comments."""
