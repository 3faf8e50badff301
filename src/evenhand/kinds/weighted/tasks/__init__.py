"""The task rubrics of the weighted protocol: read from Markdown or TOML."""
