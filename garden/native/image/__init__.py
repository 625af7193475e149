"""Object files as code that can be called."""
# Not compiled: it is not worth the time that compiling takes.
