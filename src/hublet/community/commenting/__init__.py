"""What anybody may do in the thread of a paper, a post or a blog."""
