"""A run judged on a Ray cluster: a driver hands chunks of units to actors."""
