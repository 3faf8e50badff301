"""What five people come for, from their files to the answer."""
