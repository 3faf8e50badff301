"""Pairs as they come: tables mapped, bad input told where it stands, and nothing sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import provider as p
from tests.suites import (
    at,
    evenhand_here,
    pair_row,
    pairs,
    stored,
    write_pairs,
)
from tests.unit.cli.conftest import CallCommand


def spoilt(**change: Any) -> list[dict[str, Any]]:
    rows = pairs(3)
    rows[1] |= change
    return rows


ONE = [{"id": "x", "text": "alone"}]
TWO = [{"id": "x", "text": "a"}, {"id": "y", "text": "b"}]
BAD_ROWS = {
    "one candidate": (spoilt(candidates=ONE), "two or more answers", 2),
    "empty text": (spoilt(candidates=[*ONE, {"id": "y", "text": ""}]), "is empty", 2),
    "empty topic": (spoilt(topic=""), '"topic" is empty', 2),
    "no topic": (spoilt(topic=None), '"topic"', 2),
    "duplicate pair_id": (spoilt(pair_id="p0"), '"p0"', 2),
    "duplicate candidate": (spoilt(candidates=[TWO[0], TWO[0]]), "two candidates are called", 2),
    "duplicate of a made id": (
        [pair_row("a", 1, 2, 3), pair_row("a#c1~c2", 1, 2)],
        '"a#c1~c2"',
        2,
    ),
    "unknown language": (spoilt(language="tlh"), "the protocol speaks ru, zh, ja, en", 2),
}


@pytest.mark.parametrize("name", BAD_ROWS)
async def test_bad_data_is_told_with_file_and_line_and_nothing_is_sent(
    tmp_path: Path, name: str
) -> None:
    rows, said, line = BAD_ROWS[name]
    async with p.Provider(p.comparing(p.by_number)) as provider:
        write_pairs(tmp_path, rows, at(provider.url))
        done = await _run(tmp_path)
        assert provider.calls == []
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert said in done.stderr
    assert f"pairs.jsonl:{line}" in done.stderr


async def _run(folder: Path) -> Any:
    import asyncio

    return await asyncio.to_thread(evenhand_here, "run", cwd=folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"settings": {"max_rounds": 0}}, "settings.max_rounds"),
        ({"settings": {"panel": "both"}}, "settings.panel"),
        ({"settings": {"blind": True}}, "settings.blind"),
        ({"settings": {"expose_meta": True}}, 'no setting "expose_meta"'),
        ({"settings": {"max_round": 3}}, 'did you mean "max_rounds"?'),
        ({"protocol": "nowhere"}, "no protocol is called"),
    ],
)
async def test_a_bad_suite_is_told_and_nothing_is_sent(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    async with p.Provider(p.comparing(p.by_number)) as provider:
        write_pairs(tmp_path, 2, at(provider.url), **change)
        done = await _run(tmp_path)
        assert provider.calls == []
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("name", ["max_rounds", "panel", "blind", "no_self_judging"])
def test_a_setting_of_pairs_in_a_rubric_suite_is_refused(
    call: CallCommand, tmp_path: Path, name: str
) -> None:
    from tests.suites import write_suite

    values = {"max_rounds": 2, "panel": "relay", "blind": "mask", "no_self_judging": True}
    write_suite(tmp_path, 1, settings={name: values[name]})
    said = call("run")
    assert said.code == 2
    assert f'the protocol kind rubric has no setting "{name}"' in said.err
    assert "evenhand.toml" in said.err
    assert not (tmp_path / "evenhand.db").exists()


def test_a_table_with_other_columns_is_mapped(call: CallCommand, tmp_path: Path) -> None:
    columns = {
        "pair_id": "no",
        "topic": "question",
        "candidates.1.text": "answer_a",
        "candidates.1.id": "model_a",
        "candidates.2.text": "answer_b",
        "candidates.2.id": "model_b",
        "meta.set": "split",
    }
    write_pairs(tmp_path, 1, data=["in.csv"], columns=columns)
    (tmp_path / "in.csv").write_text(
        "no,question,answer_a,answer_b,model_a,model_b,split\n"
        'q1,Why?,"worth 3, or so",worth 8,alpha,beta,test\n'
        "q2,How?,worth 7,worth 1,alpha,beta,test\n"
    )
    assert call("run").code == 0
    outputs = [row["output"] for row in stored(tmp_path)]
    assert [(one["pair_id"], one["winner"], one["candidates"]) for one in outputs] == [
        ("q1", "B", ["alpha", "beta"]),
        ("q2", "A", ["alpha", "beta"]),
    ]
    assert outputs[0]["meta"] == {"set": "test"}


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"candidates.1.text": "old", "candidates.2.text": "new"}, ("old", "new")),
        ({}, ("answer_a", "answer_b")),
    ],
)
def test_an_empty_cell_of_a_pair_is_told_by_its_line_and_column(
    call: CallCommand, tmp_path: Path, columns: dict[str, str], names: tuple[str, str]
) -> None:
    write_pairs(tmp_path, 1, data=["in.csv"], columns=columns)
    header = ",".join(("pair_id", "topic", *names))
    (tmp_path / "in.csv").write_text(f"{header}\nq1,Why?,one 1,two 2\nq2,Why?,one 1,\n")
    said = call("run")
    assert said.code == 3
    assert f'in.csv:3: "{names[1]}" is empty' in said.err
    assert "candidates" not in said.err


def test_two_answers_of_one_model_are_told_apart_by_a_number(
    call: CallCommand, tmp_path: Path
) -> None:
    write_pairs(tmp_path, 1, data=["in.csv"], columns={})
    (tmp_path / "in.csv").write_text(
        "topic,answer_a,answer_b,model_a,model_b\nWhy?,worth 3,worth 8,gpt-4o,gpt-4o\n"
    )
    assert call("run").code == 0
    (row,) = stored(tmp_path)
    assert row["output"]["candidates"] == ["gpt-4o (1)", "gpt-4o (2)"]
