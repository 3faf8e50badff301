"""What judges wrote in three languages is taken for another language in hardly any case."""

from __future__ import annotations

import pytest

from evenhand.kinds.shared.spoken import other_language
from tests.published.data import records


@pytest.mark.parametrize(
    ("file", "field", "language"),
    [
        ("mtbench_raw/judgments.jsonl.gz", "text", "en"),
        ("prd/ratings_gpt4.jsonl.gz", "text", "en"),
        ("elyza_ja/command_r_plus_takes.jsonl.gz", "reason", "ja"),
        ("judge_texts/ja_mtbench_gpt4_single.jsonl.gz", "judgment", "ja"),
        ("rakuda_ja/rakuda_v1_matches.jsonl.gz", "referee_comments", "ja"),
        ("llmeval2_zh/texts_Biological_Science.jsonl.gz", "answer", "zh"),
    ],
)
def test_fewer_than_one_published_text_in_a_hundred_is_flagged(
    file: str, field: str, language: str
) -> None:
    texts = [record[field] or "" for record in records(file)]
    flagged = [text for text in texts if other_language(text, language)]
    assert len(texts) > 500
    assert len(flagged) < 0.01 * len(texts)
