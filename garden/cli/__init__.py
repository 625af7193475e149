"""The `garden` command."""
# Not compiled: it is not worth the time that compiling takes.
