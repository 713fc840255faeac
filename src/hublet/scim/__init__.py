"""SCIM: an identity provider keeps the users and groups of an organization."""
