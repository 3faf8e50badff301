"""How well the embedded judge applies the ready rubrics.

    python bench/ready_rubrics.py FOLDER [--records N]

Two measurements, each a suite as `evenhand init --rubric` writes it, run by `evenhand run`:

- the bundled examples of every rubric in four languages, a good answer and a bad one each: is each
  score among those expected, and does the good one stand above the bad one?
- answers that people scored, from the folder EVENHAND_PUBLISHED: `correctness` on AlignBench
  (Chinese, with a reference), `conversation` on Topical-Chat as UniEval has it (English). The
  figure is Spearman's correlation with the people's scores.

A run that was ended continues; the figures are read from the stores in FOLDER.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

import evenhand
from evenhand.files.ready_rubrics import ReadyRubric, ready_names, ready_rubrics
from evenhand.words import LANGUAGES

DATA = Path(os.environ.get("EVENHAND_PUBLISHED", Path(__file__).parents[2] / "shared/data"))
LONGEST = 900
"""Characters of a published record, so that one judgment takes seconds."""


def scores(folder: Path, *options: str) -> dict[str, dict[str, float]]:
    """Return the points of each unit and dimension of a suite, made and run where it is not."""
    command = [sys.executable, "-m", "evenhand"]
    if not (folder / "evenhand.toml").exists():
        subprocess.run([*command, "init", folder, *options], check=True, capture_output=True)
    subprocess.run([*command, "run", folder], check=False, capture_output=True)
    units: dict[str, dict[str, float]] = {}
    table = evenhand.run(folder / "evenhand.toml").observations().to_pandas()
    for row in table.itertuples():
        if row.points == row.points:
            units.setdefault(row.unit, {})[row.measure] = row.points
    return units


def measure_examples(folder: Path) -> None:
    """Print a line for each rubric: its examples in each language."""
    print(f"{'rubric':14} " + " ".join(f"{language:>18}" for language in LANGUAGES))
    print(f"{'':14} " + " ".join(f"{'expected  apart':>18}" for _ in LANGUAGES))
    for name in ready_names():
        cells = []
        for language in LANGUAGES:
            found = scores(folder / f"{name}-{language}", "--rubric", name, "--language", language)
            (rubric,) = ready_rubrics([name], language)
            cells.append(f"{count_expected(rubric, found):>18}")
        print(f"{name:14} " + " ".join(cells), flush=True)


def count_expected(rubric: ReadyRubric, found: dict[str, dict[str, float]]) -> str:
    """Return how many scores are among those expected, and in how many dimensions the good answer
    stands above the bad one."""
    got = {each["id"]: found.get(f"{rubric.name}-{each['id']}", {}) for each in rubric.examples}
    expected = [
        got[each["id"]].get(dimension) in range(low, high + 1)
        for each in rubric.examples
        for dimension, (low, high) in each["expected"].items()
    ]
    apart = []
    for dimension in rubric.dimensions:
        good, bad = (got[each].get(dimension["id"], 0) for each in ("good", "bad"))
        apart.append(good < bad if dimension.get("higher_is") == "worse" else good > bad)
    return f"{sum(expected)} of {len(expected)}  {sum(apart)} of {len(apart)}"


def alignbench() -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / "zh_alignbench_items" / "pointwise.jsonl.gz", "rt") as lines:
        for record in map(json.loads, lines):
            yield {
                "id": str(record["id"]),
                "question": record["question"],
                "reference": record["reference"],
                "model_output": record["response"],
                "human": float(record["human_score"]),
            }


def topical_chat() -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / "unieval" / "topical_chat.jsonl.gz", "rt") as lines:
        for record in map(json.loads, lines):
            yield {
                "id": str(record["i"]),
                "question": record["source"],
                "model_output": record["system_output"],
                "human": record["human"]["coherence"],
            }


def measure_records(folder: Path, n: int) -> None:
    """Print how the scores of two rubrics go with those of people."""
    for rubric, language, records in (
        ("correctness", "zh", alignbench()),
        ("conversation", "en", topical_chat()),
    ):
        short = (row for row in records if len(json.dumps(row, ensure_ascii=False)) < LONGEST)
        rows = list(islice(short, n))
        data = folder / f"{rubric}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        options = ["--data", str(data), "--rubric", rubric, "--language", language]
        found = scores(folder / f"people-{rubric}", *options, "--judge", "embedded")
        both = [(found[row["id"]][rubric], row["human"]) for row in rows if row["id"] in found]
        result = spearmanr(*zip(*both, strict=True))
        print(f"{rubric} ({language}): Spearman {result.statistic:.2f} on {len(both)} answers")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, default=40)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    measure_examples(arguments.folder)
    measure_records(arguments.folder, arguments.records)


if __name__ == "__main__":
    main()
