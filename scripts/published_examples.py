"""Makes the bundled records of published judgments from the public records they come from.

    python scripts/published_examples.py RECORDS

RECORDS is a folder with `prd` and `vicuna80` as described in
src/evenhand/examples/published/SOURCES.md. Every verdict is taken; texts, which are
large, of some questions only. Nothing is chosen by what a judge said. The same records give the
same bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand import jsontext
from evenhand.data.files import opened
from evenhand.data.write import write

OUTPUT = Path(__file__).parents[1] / "src" / "evenhand" / "examples" / "published"
SIDES = {1: "first", 2: "second", 3: "tie"}
Row = dict[str, Any]


def records(path: Path) -> Iterator[Row]:
    """The rows of a file of records."""
    with opened(path) as file:
        for line in file:
            yield jsontext.parse(line.decode())


def vicuna_judges(folder: Path) -> Iterator[Row]:
    """Every verdict of both judges in both orders; the explanations of one question of each
    category, and all answers that are to be had."""
    questions = {row["question_id"]: row for row in records(folder / "vicuna80/questions.jsonl.gz")}
    explained = {row["category"]: ident for ident, row in reversed(questions.items())}
    answers = {
        (path.name.removesuffix(".jsonl.gz"), row["question_id"]): row["text"]
        for path in sorted((folder / "vicuna80/answers").glob("*.jsonl.gz"))
        for row in records(path)
    }
    ratings = [
        (row["question_id"], *sorted((row["first"], row["second"])), judge, row)
        for judge in ("gpt-4", "claude")
        for row in records(folder / f"prd/ratings_{judge.replace('-', '')}.jsonl.gz")
    ]
    units: set[tuple[Any, ...]] = set()
    for number, low, high, judge, row in sorted(ratings, key=lambda rating: rating[:3]):
        vote: Row = {"unit": f"q{number:02}", "judge": judge, "first": row["first"]}
        vote |= {"second": row["second"], "winner": SIDES[row["score"]]}
        if (number, low, high) not in units:
            units.add((number, low, high))
            vote |= {
                "question": questions[number]["text"],
                "first_answer": answers.get((row["first"], number), ""),
                "second_answer": answers.get((row["second"], number), ""),
            }
        if number in explained.values():
            vote["explanation"] = row["text"].strip()
        yield vote | {"category": questions[number]["category"]}


def vicuna_people(folder: Path) -> Iterator[Row]:
    """Every rating by people."""
    for row in records(folder / "prd/ratings_human.jsonl.gz"):
        vote = {"unit": f"q{row['question_id']:02}", "judge": "people", "first": row["first"]}
        yield vote | {"second": row["second"], "winner": SIDES[row["score"]]}


def main() -> None:
    """Write every file."""
    folder = Path(sys.argv[1])
    for name, rows in {
        "vicuna-judges": vicuna_judges(folder),
        "vicuna-people": vicuna_people(folder),
    }.items():
        path = OUTPUT / f"{name}.jsonl.gz"
        count = write(path, rows)
        print(f"{path.name}: {count} rows, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
