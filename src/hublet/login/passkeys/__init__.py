"""Passkeys: a device shows who somebody is, without a password."""
