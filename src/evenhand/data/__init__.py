"""Rows of data files: JSONL, JSON, CSV, workbooks and Parquet, each also gzipped.

Nothing here knows what a unit is. A table is read once, into memory.
"""

from __future__ import annotations

from evenhand.data.columns import Row
from evenhand.data.read import rows
from evenhand.data.write import write

__all__ = ["Row", "rows", "write"]
