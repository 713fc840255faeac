"""Resource groups: parts of an organization with members and roles of their own."""
