"""How well the embedded judge compares two answers, asked in both orders as the protocol asks it.

    python bench/embedded_pairs.py run [--split test] [--minutes 60]   judge, continue, report
    python bench/embedded_pairs.py report [--split test]               report what was judged

Three kinds of pairs: easy right and wrong answers and true ties in four languages, from
`embedded_easy_pairs.json`, and LLMBar Natural from the folder EVENHAND_PUBLISHED. What was tuned
was tuned on `dev` pairs, which `test` leaves out. The raw values are kept in a cache file by the
prompt they belong to, so that an interrupted run continues and the tables are recomputed from them;
the rounds after the first need no further value, since they are drawn from those of the first.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from embedded_quality import DATA, HERE, LANGUAGES, Cache, Record, wilson
from msgspec import convert
from msgspec.structs import replace

from evenhand.exchange import Question
from evenhand.files.protocols import find_protocol
from evenhand.judges.embedded import models
from evenhand.judges.embedded.child import Answerer
from evenhand.judges.embedded.decoding import (
    MARGIN,
    Choice,
    Draw,
    Versus,
    compare,
    decide,
    find_choices,
    log_odds,
)
from evenhand.judges.embedded.judge import count_threads
from evenhand.judges.embedded.runtime import Runtime
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.pairwise.kind import PairwiseProtocol, read_priority
from evenhand.kinds.pairwise.verdict import PairPass, settle
from evenhand.units import Candidate, Pair

# LLMBar: the first so many of the fitting pairs are for tuning; of the others, those up to SHORT.
LONGEST, TUNED, SHORT = 2400, 25, 800
WRITTEN = Choice(("winner",), ("A", "B"))
"""What the model itself would write, for comparison."""


class Item(NamedTuple):
    """Two answers; the first is the better one, or as good as the other where it is a tie."""

    group: str
    language: str
    question: str
    answers: tuple[str, str]
    tie: bool = False


def items(split: str) -> Iterator[Item]:
    """All pairs, the kinds mixed, so that a run that stops early is balanced."""
    kinds = [list(easy(split)), list(llmbar(split)), list(ties(split))]
    for index in range(max(map(len, kinds))):
        for listed in kinds:
            yield from listed[index : index + 1]


def easy(split: str) -> Iterator[Item]:
    """A right and a wrong answer each, the languages in turn."""
    listed = json.loads((HERE / "embedded_easy_pairs.json").read_text(encoding="utf-8"))
    for index in range(len(listed["en"][split])):
        for language in LANGUAGES:
            question, right, wrong = listed[language][split][index]
            yield Item(f"easy {language}", language, question, (right, wrong))


def ties(split: str) -> Iterator[Item]:
    """Answers of the same worth."""
    listed = json.loads((HERE / "embedded_easy_pairs.json").read_text(encoding="utf-8"))
    for index in range(len(listed["en"]["ties"][split])):
        for language in LANGUAGES:
            question, one, other = listed[language]["ties"][split][index]
            yield Item("ties (right: first won)", language, question, (one, other), tie=True)


def llmbar(split: str) -> Iterator[Item]:
    """LLMBar Natural; nothing where the data are absent."""
    file = DATA / "llmbar/items/LLMBar__Natural.jsonl.gz"
    if not file.is_file():
        print(f"skipped: LLMBar is not at {file} (set EVENHAND_PUBLISHED)", file=sys.stderr)
        return
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    texts = ("input", "output_1", "output_2")
    sizes = {row["i"]: sum(len(row[name]) for name in texts) for row in rows}
    fitting = [row for row in rows if sizes[row["i"]] <= LONGEST]
    for row in fitting[:TUNED] if split == "dev" else fitting[TUNED:]:
        if sizes[row["i"]] <= SHORT:
            better, worse = (row[f"output_{n}"] for n in (row["label"], 3 - row["label"]))
            yield Item("LLMBar Natural", "en", row["input"], (better, worse))


class Pairs:
    """The product's own questions about pairs."""

    def __init__(self) -> None:
        found = find_protocol("pairwise")
        self._protocols = {one: _spoken(found, one) for one in LANGUAGES}

    def questions(self, item: Item, number: int = 1) -> list[Question]:
        """Both orders, the better answer first and then second."""
        first, second = (Candidate(id="", text=text) for text in item.answers)
        pair = Pair(id="", row="", topic=item.question, first=first, second=second)
        asking = JudgingContext(ask=_unasked, styles=("compact",))
        asked = self._protocols[item.language].questions(pair, asking)
        return [replace(one, round=number) for one in sorted(asked, key=lambda one: one.order)]


def _spoken(found: Any, language: str) -> PairwiseProtocol:
    criteria = found.read_table("criteria", language)
    return PairwiseProtocol(
        prompts=found.prompts(language),
        words=found.words(language),
        criteria=criteria,
        priority=read_priority(found),
    )


async def _unasked(question: Question) -> Any:
    raise NotImplementedError(question.unit)


def versus_of(question: Question) -> Versus:
    """How the question sets its two texts against each other."""
    assert question.schema is not None
    found = next(
        one.versus for one in find_choices(question.schema.value) if one.path == WRITTEN.path
    )
    assert found is not None
    return found


def questions_of(versus: Versus) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """What the model is asked about two texts."""
    return Choice(WRITTEN.path, ("A", "B", "tie"), versus).questions


def key_of(question: Question) -> str:
    said = [[one.role, one.content] for one in question.messages]
    versus = versus_of(question)
    asked = [questions_of(versus), versus.topic, WRITTEN.questions]
    return hashlib.sha256(json.dumps([said, asked]).encode()).hexdigest()[:32]


class Bench:
    """A loaded model, asked for everything the report needs about a pair."""

    def __init__(self, path: Path, cache: Cache) -> None:
        self.runtime, self.cache = Runtime(path, count_threads(), lambda: None), cache
        self.answerer = Answerer(self.runtime)

    def run(self, listed: Iterable[Item], minutes: float) -> None:
        until = time.monotonic() + 60 * minutes
        pairs = Pairs()
        for item in listed:
            if time.monotonic() > until:
                print("out of time; run again to continue", file=sys.stderr)
                return
            for question in pairs.questions(item):
                self.cache.of(key_of(question), partial(self._measured, question))

    def _measured(self, question: Question) -> Record:
        began = time.monotonic()
        versus = versus_of(question)
        alone = self.answerer.lead(versus)
        favoured = time.monotonic()
        session = self.runtime.session(question.messages)
        return {
            "letters": [log_odds(session, *asked) for asked in questions_of(versus)],
            "alone": alone,
            "written": log_odds(session, *WRITTEN.questions[0]),
            "seconds": [favoured - began, time.monotonic() - favoured],
            "tokens": len(session.prompt),
        }


Way = Callable[[Record, Draw | None], str]
"""How the winner of a pass is read from what was measured."""


def _written(record: Record, draw: Draw | None) -> str:
    return str(decide(WRITTEN, record["written"]))


def _letters(record: Record, draw: Draw | None) -> str:
    return _decided(compare(record["letters"], 0.0), draw)


def _alone(record: Record, draw: Draw | None) -> str:
    half = record["alone"] / 2
    return _decided((half, -half, MARGIN / 2), draw)


def _shipped(record: Record, draw: Draw | None) -> str:
    return _decided(compare(record["letters"], record["alone"]), draw)


def _decided(odds: Sequence[float], draw: Draw | None) -> str:
    nobody = Versus(("A", "B"), ("", ""), "", "", "")
    return str(decide(Choice(WRITTEN.path, ("A", "B", "tie"), nobody), odds, draw))


WAYS: dict[str, tuple[Way, int]] = {
    "written letter": (_written, 1),
    "letters, better against worse": (_letters, 1),
    "likelihood of the texts alone": (_alone, 1),
    "shipped, first round": (_shipped, 1),
    "shipped, three rounds": (_shipped, 3),
}


def outcome(item: Item, pairs: Pairs, known: dict[str, Record], way: Way, rounds: int) -> str:
    """What the protocol makes of a pair; empty where it was not measured."""
    made: list[tuple[PairPass, PairPass]] = []
    for number in range(1, rounds + 1):
        asked = pairs.questions(item, number)
        if any(key_of(question) not in known for question in asked):
            return ""
        first, second = (_pass(one, way(known[key_of(one)], _draw(one))) for one in asked)
        made.append((first, second))
    winner = settle(made).winner
    return {"A": "right", "B": "wrong"}.get(winner, winner)


def _draw(question: Question) -> Draw | None:
    temperature, seed = question.sampling(0.0, 0)
    assert temperature is not None
    assert seed is not None
    return Draw.of(question.messages, temperature, seed) if question.round > 1 else None


def _pass(question: Question, winner: str) -> PairPass:
    """The pass of a reply that names this winner and nothing else, mapped back to the item."""
    turned = {"A": "B", "B": "A"}.get(winner, winner)
    mapped = winner if question.order == "12" else turned
    record = {"reask": 0, "problems": [], "round": question.round, "order": question.order}
    return convert({**record, "judge": "", "flags": [], "winner": mapped}, PairPass)


OUTCOMES = ("right", "wrong", "tie", "uncertain")


def report(split: str, known: dict[str, Record]) -> None:
    """Print the tables, as Markdown."""
    pairs, listed = Pairs(), list(items(split))
    print(f"| pairs | way to decide | n | {' | '.join(OUTCOMES)} | consistent | right of decided |")
    print(f"|{'---|' * 9}")
    for group in dict.fromkeys(item.group for item in listed):
        for name, (way, rounds) in WAYS.items():
            own = [item for item in listed if item.group == group]
            results = [outcome(item, pairs, known, way, rounds) for item in own]
            if any(results):
                _row(group, name, [one for one in results if one])
    _timings(known)


def _row(group: str, way: str, results: list[str]) -> None:
    counts = [results.count(one) for one in OUTCOMES]
    n, decisive = len(results), counts[0] + counts[1]
    cells = [group, way, str(n), *map(str, counts)]
    cells += [_share(n - counts[3], n), _share(counts[0], decisive)]
    print(f"| {' | '.join(cells)} |")


def _share(right: int, n: int) -> str:
    low, high = wilson(right, n)
    return f"{right / n:.0%} [{low:.0%}, {high:.0%}]" if n else "-"


def _timings(known: dict[str, Record]) -> None:
    if known:
        middle = len(known) // 2
        alone = sorted(sum(row["seconds"][:1]) for row in known.values() if row["seconds"][0] > 0.1)
        passed = sorted(row["seconds"][1] for row in known.values())[middle]
        tokens = sorted(row["tokens"] for row in known.values())[middle]
        print(f"\n{len(known)} prompts; median {tokens} tokens, {passed:.1f} s a pass,", end=" ")
        print(f"{alone[len(alone) // 2]:.1f} s a pair for the texts alone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("command", choices=["run", "report"])
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--model", default=models.DEFAULT, help="a name, or a path to a GGUF file")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir(), "evenhand_embedded_pairs.jsonl")
    )
    given = parser.parse_args()
    cache = Cache(given.cache)
    if given.command == "run":
        path = Path(given.model) if given.model.endswith(".gguf") else models.find(given.model)
        if path is None:
            sys.exit(f"skipped: fetch the model first: evenhand models get {given.model}")
        Bench(path, cache).run(items(given.split), given.minutes)
    report(given.split, cache.known)


if __name__ == "__main__":
    main()
