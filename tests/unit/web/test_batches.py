"""The page of a run tells of its batches, in four languages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from evenhand.runs.stores import open_store
from evenhand.store.batches import BatchItem, NewBatch
from evenhand.store.rows import CALL_TAG
from evenhand.words import LANGUAGES
from tests.suites import judged, write_suite
from tests.unit.web.serving import served

WORDS = {
    "en": "Batches under way",
    "ru": "Пакеты в работе",
    "zh": "处理中的批次",
    "ja": "処理中のバッチ",
}


@pytest.fixture
def run(tmp_path: Path) -> str:
    """A run with a batch of two questions under way."""
    write_suite(tmp_path, 2)
    summary = asyncio.run(judged(tmp_path))

    async def note() -> None:
        store = open_store("sqlite:evenhand.db", tmp_path)
        items = [BatchItem(f"{CALL_TAG}{n:040x}", 5, 0, "{}") for n in range(2)]
        batch = NewBatch(name="b", run=summary.run, judge="openai/<b>x", place="p", items=items)
        async with store.batches() as book:
            await book.prepare(batch)
            await book.attach("b", "batch_7", "in_progress")
        store.close()

    asyncio.run(note())
    return summary.run


def test_a_run_shows_its_batches(run: str, tmp_path: Path) -> None:
    with served(tmp_path / "evenhand.db") as site:
        pages = {
            language: site.get(f"/runs/{run}", **{"Accept-Language": language}).text
            for language in LANGUAGES
        }
    for language, page in pages.items():
        assert WORDS[language] in page
        assert "batch_7" in page and "openai/&lt;b&gt;x" in page
        assert "in_progress" in page and 'data-label="Open">2</td>' in pages["en"]
