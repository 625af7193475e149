"""Object files as code that can be called."""
