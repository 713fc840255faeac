"""Lists of repositories: of a type for everybody, of an owner for those who belong there."""
