"""SCIM: an identity provider manages the users and groups of an organization."""
