"""What may be concluded: plain functions, values in, frozen results out."""
