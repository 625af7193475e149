"""Object files as code that can be called."""
# Not compiled: every warm start loads it, and small modules load faster than compiled groups.
