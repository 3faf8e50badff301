"""Which candidate leads? Win rates, ratings and ranks with intervals."""
