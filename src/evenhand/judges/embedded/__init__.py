"""A small real model in a child process: a judge without a key and without a network."""

from evenhand.judges.embedded.judge import EmbeddedJudge, open_embedded

__all__ = ["EmbeddedJudge", "open_embedded"]
