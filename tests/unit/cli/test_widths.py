"""What commands print at 80 and 120 columns: tables that fit, with names that can be told apart."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.unit.cli.conftest import CallCommand

JUDGES = ("openai/gpt-4.1-mini-2025-04-14", "openai/gpt-4.1-mini-2025-07-01", "openai/gpt-4.1")
PEOPLE = "human/ann"
CANDIDATES = (
    "meta-llama/llama-3.3-70b-instruct-turbo-v1",
    "meta-llama/llama-3.3-70b-instruct-turbo-v2",
    "クエン三号大規模言語モデル",
)
DIMENSIONS = (
    "constraint_adherence",
    "helpfulness_and_creativity",
    "とても長い日本語の評価軸の名前",
)
VARIANTS = ("prompt-variant-long-name-one", "prompt-variant-long-name-two")
WIDTHS = ("80", "120")
COMMANDS = {
    "votes": (
        ("show",),
        ("leaderboard",),
        ("agreement",),
        ("agreement", "--against", f":{PEOPLE}"),
        ("compare", "--worst", "2"),
    ),
    "scores": (
        ("show",),
        ("agreement",),
        ("agreement", "--against", f":{PEOPLE}"),
        ("compare", "--by", "prompt_variant", "--within", "part"),
        ("gate", "--by", "prompt_variant", "--baseline", VARIANTS[0], "--better"),
    ),
}


def votes() -> list[dict[str, Any]]:
    chance = random.Random(3)
    rows: list[dict[str, Any]] = []
    for question in range(6):
        for first, second in ((0, 1), (0, 2), (1, 2)):
            for judge in (*JUDGES, PEOPLE):
                for order in ((first, second), (second, first)):
                    shown = [CANDIDATES[place] for place in order]
                    winner = chance.choices([*shown, "tie"], [5, 3, 1])[0]
                    names = dict(zip(("first", "second"), shown, strict=True))
                    unit = f"q{question}-{first}{second}"
                    rows.append({"unit": unit, "judge": judge, "winner": winner, **names})
    return rows


def scores() -> list[dict[str, Any]]:
    chance = random.Random(4)
    return [
        {
            "unit": f"q{question}/{variant}",
            "judge": judge,
            "dimension": dimension,
            "score": chance.randint(1, 5),
            "prompt_variant": variant,
            "question_id": f"q{question}",
            "part": "one" if question < 6 else "two",
        }
        for question in range(12)
        for variant in VARIANTS
        for judge in (*JUDGES, PEOPLE)
        for dimension in DIMENSIONS
    ]


def taken_in(call: CallCommand, folder: Path, kind: str, rows: list[dict[str, Any]]) -> None:
    (folder / f"{kind}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert call("import", f"{kind}.jsonl", "--kind", kind, "--name", kind).code == 0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", COMMANDS)
def test_tables_fit_and_names_that_begin_alike_are_told_apart(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    for name in ("CI", "GITHUB_ACTIONS"):  # annotations are one line each, however long
        monkeypatch.delenv(name, raising=False)
    taken_in(call, tmp_path, kind, votes() if kind == "votes" else scores())
    for command, *options in COMMANDS[kind]:
        output = call(command, kind, *options).out
        lines = output.splitlines()
        assert len(lines) > 3, command
        assert max(map(cell_len, lines)) <= int(width), command
        assert all(line == line.rstrip() for line in lines), command
        # Names are put on several lines, never cut: those that begin alike can be told apart.
        assert "…" not in output, command


def test_one_judge_alone_is_told_what_is_needed_in_one_sentence(
    call: CallCommand, tmp_path: Path
) -> None:
    taken_in(call, tmp_path, "scores", [row for row in scores() if row["judge"] == JUDGES[2]])
    lines = call("agreement", "scores").out.splitlines()
    assert lines[:2] == [lines[0], "0 units rated by at least two; 24 by one alone"]
    assert lines[2].startswith("There is nothing to hold these judgments against")
    assert not any("none" in line or "─" in line for line in lines)
