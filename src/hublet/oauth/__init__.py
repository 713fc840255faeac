"""OAuth 2 and OpenID Connect: apps, grants, and the pages a person sees."""
