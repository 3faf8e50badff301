"""The user's files: protocols, rubrics, replies to check."""
