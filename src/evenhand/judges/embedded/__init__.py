"""A small real model in a child process: a judge without a key and without a network."""
