"""What a person is asked before an app may act for them, and what they agreed to."""
