"""Apps that users and organizations register: management, client secrets, logos."""
