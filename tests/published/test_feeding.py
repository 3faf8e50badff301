"""How the published records are fed: as the file is, by SQL alone, or reshaped by
the test, and then why."""

from __future__ import annotations

import json
from collections import Counter

from tests.published.data import folder

RAW = (
    *("mtbench.t", "mtbench.inconsistent", "mtbench.wrong_merge", "vicuna80.blog"),
    *("vicuna80.sums", "vicuna80.parse", "judge_texts"),
)
BY_SQL = (
    *("alpacaeval.leaderboard", "alpacaeval.lc", "mtbench.majority", "mtbench.human_krippendorff"),
    *("alpacafarm.humans", "llmbar", "judgebench", "autoj", "ru_bt", "alpha.codings", "shisa_ja"),
    *("ruqual.summaries", "ruqual.judge_vs_judge", "ru_arena", "arena_debias"),
    *("vicuna80.faireval", "pandalm", "llmeval2", "rakuda"),
    *("summeval", "unieval", "prd", "llmfao"),
)
RESHAPED = {
    "alpacafarm.longest": "the judge is a rule, the longer output, which is in no table",
    "alpacafarm.gpt4_b1": "one of its figures is about that rule",
    "ru_truthfulqa": "a score is the product of two others",
}


def test_every_record_is_fed_raw_or_by_sql_where_its_table_allows():
    anchors = json.loads((folder() / "anchors.json").read_text(encoding="utf-8"))
    ways = {"raw": RAW, "sql": BY_SQL, "reshaped": tuple(RESHAPED)}
    fed = {
        one["id"]: [way for way, begins in ways.items() if one["id"].startswith(begins)]
        for one in anchors
    }
    assert [ident for ident, found in fed.items() if len(found) != 1] == []
    counts = Counter(found[0] for found in fed.values())
    assert counts == {"raw": 21, "sql": 65, "reshaped": 5}
