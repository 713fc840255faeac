"""Credentials of this hub that somebody put where everybody can read them."""
