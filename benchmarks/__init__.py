"""The loads behind every figure: ours and a ceiling or a peer in the same run."""
