"""How the published records are fed: as the file is, by options of `import` alone, or reshaped by
the test, and then why."""

from __future__ import annotations

import json
from collections import Counter

from tests.published.data import folder

RAW = (
    *("mtbench.t", "mtbench.inconsistent", "mtbench.wrong_merge", "vicuna80.blog"),
    *("vicuna80.sums", "vicuna80.parse", "judge_texts"),
)
BY_OPTIONS = (
    *("vicuna80.faireval", "pandalm", "llmeval2", "rakuda"),
    *("summeval", "unieval", "prd", "llmfao"),
)
RESHAPED = {
    "alpacaeval.leaderboard": "a file of two annotators, imported one by one",
    "alpacaeval.lc": "difficulties are joined by the place of a row, from a second file",
    "mtbench.majority": "an author who voted twice on a pair counts as two voters there",
    "mtbench.human_krippendorff": "an author who voted twice on a pair counts as two voters there",
    "alpacafarm": "of each pair only the first four votes count",
    "llmbar": "two replies that cannot be read count as equal there; labels stand beside verdicts",
    "judgebench": "a win against a tie is a win there; labels stand beside verdicts",
    "autoj": "labels stand beside verdicts, and an order alone is held against them",
    "ru_bt": "verdicts under several prompts, imported one by one",
    "alpha.codings": "raters are rows and units are columns",
    "shisa_ja": "the categories of questions stand in a second file",
    "ruqual.summaries": "rows of judgments that failed hold zeros",
    "ruqual.judge_vs_judge": "two judges with three counts each stand in one row",
    "ru_arena": "the published count drops a label, which no reader should",
    "ru_truthfulqa": "a score is the product of two others",
    "arena_debias": "labels are drawn from the file",
}


def test_every_record_is_fed_raw_or_by_options_where_its_table_allows() -> None:
    anchors = json.loads((folder() / "anchors.json").read_text(encoding="utf-8"))
    ways = {"raw": RAW, "options": BY_OPTIONS, "reshaped": tuple(RESHAPED)}
    fed = {
        one["id"]: [way for way, begins in ways.items() if one["id"].startswith(begins)]
        for one in anchors
    }
    assert [ident for ident, found in fed.items() if len(found) != 1] == []
    counts = Counter(found[0] for found in fed.values())
    assert counts == {"raw": 21, "options": 18, "reshaped": 52}
