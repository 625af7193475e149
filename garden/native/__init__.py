"""Machine code: generating, caching, loading and running it."""
