"""Where everything is, for clients that find it by themselves."""
