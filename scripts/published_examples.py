"""Makes the bundled records of published judgments from the public records they come from.

    python scripts/published_examples.py RECORDS

RECORDS is a folder with `prd`, `vicuna80`, `rakuda_ja` and `ruqual_ru` as described in
src/evenhand/examples/published/SOURCES.md. Every verdict is taken; texts, which are
large, of some questions only. Nothing is chosen by what a judge said. The same records give the
same bytes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand import jsontext
from evenhand.data.files import opened
from evenhand.data.write import write

OUTPUT = Path(__file__).parents[1] / "src" / "evenhand" / "examples" / "published"
SIDES = {1: "first", 2: "second", 3: "tie"}
RAKUDA_TEXTS = 4
"""Questions of which answers and comments are bundled: the first of the file."""
RUSSIAN_TEXTS = 10
"""Dialogs of which texts are bundled: those of one turn whose answers are shortest."""
SEVERITIES = {
    "critical_mistakes": "critical",
    "mistakes": "plain",
    "additional_mistakes": "minor",
}
QUOTED = re.compile(r"«([^«»]+)»|“([^“”]+)”|\"([^\"]+)\"|(?<!\w)'([^']+)'(?!\w)")
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


def rakuda(folder: Path) -> Iterator[Row]:
    """Every match; answers and comments of a few questions."""
    questions: dict[str, str] = {}
    matches = list(records(folder / "rakuda_ja/rakuda_v1_matches.jsonl.gz"))
    for row in matches:
        questions.setdefault(row["question_id"], f"q{len(questions) + 1:02}")
    units: set[tuple[Any, ...]] = set()
    for row in sorted(matches, key=lambda match: questions[match["question_id"]]):
        unit = questions[row["question_id"]]
        names = [row[f"model{side}_id"].split("/")[-1].split(":")[0] for side in (1, 2)]
        vote: Row = {"unit": unit, "judge": "gpt-3.5-turbo", "first": names[0]}
        vote |= {"second": names[1], "winner": SIDES.get(row["score"], "")}
        has_texts = int(unit[1:]) <= RAKUDA_TEXTS
        if (unit, *sorted(names)) not in units:
            units.add((unit, *sorted(names)))
            vote["question"] = row["question"]
            if has_texts:
                vote |= {"first_answer": row["response1"], "second_answer": row["response2"]}
        if has_texts:
            vote["explanation"] = row["referee_comments"].strip()
        yield vote


def ruqual(folder: Path) -> Iterator[Row]:
    """Whether an answer has mistakes of each severity; for some dialogs the texts and the quotes
    that show them. Of each model the first run."""
    dialogs = {
        row["dialog_id"]: row["dialog"] for row in records(folder / "ruqual_ru/dialogs.jsonl.gz")
    }
    answers: dict[tuple[int, str], Row] = {}
    for row in records(folder / "ruqual_ru/results.jsonl.gz"):
        if row["answer"] and not row["error"]:
            model = row["model"].split(" (")[0].split("/")[-1]
            answers.setdefault((row["dialog_id"], model), row)
    lengths: dict[int, int] = {}
    for (dialog, _), row in answers.items():
        if len(dialogs[dialog]) == 1:
            lengths[dialog] = lengths.get(dialog, 0) + len(row["answer"])
    with_texts = set(sorted(lengths, key=lambda dialog: lengths[dialog])[:RUSSIAN_TEXTS])
    for (dialog, model), row in sorted(answers.items()):
        question = dialogs[dialog][0]["content"] if dialog in with_texts else ""
        yield from _russian_scores(f"d{dialog:02}", model, row, question)


def _russian_scores(unit: str, model: str, row: Row, question: str) -> Iterator[Row]:
    texts: Row = {"question": question, "answer": row["answer"]} if question else {}
    for column, dimension in SEVERITIES.items():
        score = {"unit": unit, "judge": "gemini-2.5-pro", "model": model, "dimension": dimension}
        score |= {"score": int(row[column] == 0), **texts}
        if question:
            reasons = [str(reason) for reason in row[f"explanation_{column}"]]
            quotes = (QUOTED.search(reason) for reason in reasons)
            fragments = [next(filter(None, quote.groups())) for quote in quotes if quote]
            score |= {"evidence": fragments, "rationale": " ".join(reasons)}
        yield score
        texts = {}


def main() -> None:
    """Write every file."""
    folder = Path(sys.argv[1])
    for name, rows in {
        "vicuna-judges": vicuna_judges(folder),
        "vicuna-people": vicuna_people(folder),
        "rakuda": rakuda(folder),
        "ruqual": ruqual(folder),
    }.items():
        path = OUTPUT / f"{name}.jsonl.gz"
        count = write(path, rows)
        print(f"{path.name}: {count} rows, {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
