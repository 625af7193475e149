"""Machine code: what generates it, keeps it, loads it, and runs it."""
