"""What of a repository can be changed beside its content: visibility, gate, resource group."""
