"""The `garden` command."""
# Not compiled: every warm start loads it, and small modules load faster than compiled groups.
