"""Is one variant better than another? Paired differences, their tests, and what is missing."""
