"""The process in which the hub of tests runs; see `hublet.testing.process` for the other side."""
