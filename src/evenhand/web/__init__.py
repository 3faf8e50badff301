"""The web interface: pages and a JSON API over a store, on this machine."""
