"""May this ship, and may judging stop? Conditions held to intervals, and a test at any time."""
