"""What all kinds of judging share: asking, reading replies, prompts, words."""
