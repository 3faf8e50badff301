"""The making of a run: prepare, judge, settle, forecast, stop early, take in from elsewhere."""
