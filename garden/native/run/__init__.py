"""The machines that run native code inside a Python process."""
