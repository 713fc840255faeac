"""OAuth 2 and OpenID Connect: apps, authorization, grants, tokens, and the pages a person sees."""
