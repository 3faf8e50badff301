"""A fourth kind of judging, as somebody else would write it: one folder, one entry."""
