"""Rows of data files: read from and written to JSONL, JSON, CSV and Parquet, each also gzipped.

Nothing here knows what a unit is. Reading holds one row in memory, writing one batch.
"""

from __future__ import annotations

from evenhand.data.read import Row, rows
from evenhand.data.write import write

__all__ = ["Row", "rows", "write"]
