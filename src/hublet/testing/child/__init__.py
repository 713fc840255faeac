"""Child process in which the hub of tests runs; `hublet.testing.process` is the other side."""
