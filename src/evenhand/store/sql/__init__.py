"""What every store behind SQL shares: the statements, and what is made of their rows."""
