"""Rows of data files: JSONL, JSON, CSV, workbooks and Parquet, each also gzipped.

Nothing here knows what a unit is. A table is read once, into memory.
"""

from __future__ import annotations

from evenhand.data.read import Row, rows
from evenhand.data.write import write

__all__ = ["Row", "rows", "write"]
