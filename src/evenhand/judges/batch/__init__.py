"""The batch endpoints of providers, each in a module of its own."""
