"""The kind `answer`: questions that models answer, for other kinds to judge."""
