"""What all SCIM routes share."""
