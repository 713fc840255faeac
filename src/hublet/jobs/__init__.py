"""Jobs: what they are; running them comes with the runners."""
