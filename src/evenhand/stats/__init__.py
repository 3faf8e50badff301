"""Statistics as plain functions: values in, frozen results out."""
