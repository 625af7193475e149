"""The `garden` command."""
