"""Apps that send people here to sign out (OpenID Connect RP-Initiated Logout 1.0)."""
