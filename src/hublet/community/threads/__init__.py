"""What discussions, papers, posts and blogs share: comments, mentions, participants, muting."""
