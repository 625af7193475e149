"""Programs as Linux executables that need neither Python nor libc."""
