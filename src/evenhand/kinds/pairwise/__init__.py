"""The kind `pairwise`: which of two answers is better, in both orders."""
