"""What everyday operations cost in a hub that has grown: one topic for each thing that grows."""
