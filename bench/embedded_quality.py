"""How well the embedded judge scores one answer on a rubric, by several ways to decide a score.

    python bench/embedded_quality.py run [--split test] [--minutes 30]   judge, continue, report
    python bench/embedded_quality.py report [--split test]               report what was judged

Two kinds of items: LLMBar pairs (each output scored on its own; does the better one get the higher
score?) from the folder EVENHAND_PUBLISHED, and easy right and wrong answers in four languages from
`embedded_easy.json`. What was tuned was tuned on `dev` items, which `test` leaves out. Every raw
value is kept in a cache file, so that an interrupted run continues and every table is recomputed
from the same values.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.exchange import Message
from evenhand.judges.embedded import models
from evenhand.judges.embedded.judge import threads
from evenhand.judges.embedded.options import log_odds
from evenhand.judges.embedded.prose import grammar, read
from evenhand.judges.embedded.runtime import Runtime, Sampling
from evenhand.judges.embedded.walk import Choice, choices, corrected, decided
from evenhand.kinds import load_protocol
from evenhand.kinds.rubric.protocol import RubricProtocol
from evenhand.kinds.rubric.rubric import Rubric, build_rubric
from evenhand.units import Sample

HERE = Path(__file__).parent
DATA = Path(os.environ.get("EVENHAND_PUBLISHED", HERE.parent.parent / "shared/data"))
# Items of up to this many characters, question and both outputs; the first so many are for tuning.
LONGEST = 2400
LLMBAR = {"Natural": 25, "Adversarial__GPTInst": 7, "Adversarial__Neighbor": 8}
LANGUAGES = ("en", "ru", "zh", "ja")
CRITERIA = {
    "en": (
        "is the answer correct, and does it do what the question asks?",
        "wrong, or not what was asked",
        "mostly wrong",
        "partly right",
        "right with a small flaw",
        "fully right and what was asked",
    ),
    "ru": (
        "верен ли ответ и делает ли он то, о чём просит вопрос?",
        "неверно или не то, о чём просили",
        "в основном неверно",
        "верно отчасти",
        "верно, с мелким недочётом",
        "полностью верно и то, о чём просили",
    ),
    "zh": (
        "回答是否正确，是否做到了问题所要求的？",
        "错误，或答非所问",
        "大部分错误",
        "部分正确",
        "正确，有小瑕疵",
        "完全正确，且符合要求",
    ),
    "ja": (
        "回答は正しく、質問の求めることをしているか。",
        "誤り、または求められたことと違う",
        "大部分が誤り",
        "一部正しい",
        "正しいが小さな欠点がある",
        "完全に正しく、求められたとおり",
    ),
}
# On the question and well formed, but nobody can know whether it is right: what a judge gives to
# these is its lean towards any answer that looks like one.
UNKNOWN = {
    "en": ("What is in my pocket?", "There is a key in your pocket."),
    "ru": ("Что лежит у меня в кармане?", "У вас в кармане лежит ключ."),
    "zh": ("我的口袋里有什么？", "您的口袋里有一把钥匙。"),
    "ja": ("私のポケットには何が入っていますか。", "あなたのポケットには鍵が入っています。"),
}
SCORES = (1, 2, 3, 4, 5)
Odds = tuple[float, ...]
Record = dict[str, Any]


class Item(NamedTuple):
    """A question with a better and a worse answer."""

    key: str
    group: str
    language: str
    question: str
    better: str
    worse: str


def llmbar(split: str) -> Iterator[Item]:
    """LLMBar pairs, Natural and Adversarial in turn; nothing where the data are absent."""
    folder = DATA / "llmbar/items"
    if not folder.is_dir():
        print(f"skipped: LLMBar is not at {folder} (set EVENHAND_PUBLISHED)", file=sys.stderr)
        return
    sets = [list(_llmbar_set(folder, name, split)) for name in LLMBAR]
    for index in range(max(map(len, sets))):
        for listed in (sets[0], sets[1 + index % 2]):
            if index < len(listed):
                yield listed[index]


def _llmbar_set(folder: Path, name: str, split: str) -> Iterator[Item]:
    with gzip.open(folder / f"LLMBar__{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    fitting = [row for row in rows if _length(row) <= LONGEST]
    first = LLMBAR[name]
    for row in fitting[:first] if split == "dev" else fitting[first:]:
        label = row["label"]
        better, worse = row[f"output_{label}"], row[f"output_{3 - label}"]
        group = name.partition("__")[0]
        yield Item(f"llmbar/{name}/{row['i']}", group, "en", row["input"], better, worse)


def _length(row: Record) -> int:
    return sum(len(row[name]) for name in ("input", "output_1", "output_2"))


def easy(split: str) -> Iterator[Item]:
    """Right and wrong answers to easy questions, the languages in turn."""
    listed = json.loads((HERE / "embedded_easy.json").read_text(encoding="utf-8"))
    for index in range(len(listed["en"][split])):
        for language in LANGUAGES:
            question, right, wrong = listed[language][split][index]
            key = f"easy/{language}/{split}/{index}"
            yield Item(key, f"easy {language}", language, question, right, wrong)


def items(split: str) -> Iterator[Item]:
    """All items, the kinds mixed, so that a run that stops early is balanced."""
    kinds = [list(easy(split)), list(llmbar(split))]
    for index in range(max(map(len, kinds))):
        for listed in kinds:
            yield from listed[index : index + 1]


class Prompts:
    """The product's own compact prompts about one output."""

    def __init__(self) -> None:
        root = files("evenhand.kinds") / "builtin" / "rubric"
        places = ["protocol.toml", *(f"words/{one}.toml" for one in LANGUAGES)]
        places += [f"prompts/{style}{one}.md" for one in LANGUAGES for style in ("", "compact/")]
        texts = {place: root.joinpath(place).read_text(encoding="utf-8") for place in places}
        loaded = load_protocol("rubric", texts)
        self._protocols = {
            one: RubricProtocol(prompts=loaded.prompts(one), words=loaded.words(one))
            for one in LANGUAGES
        }

    def about(
        self, language: str, question: str, answer: str
    ) -> tuple[tuple[Message, ...], Choice]:
        sample = Sample(id="", question=question, model_output=answer)
        asked = self._protocols[language].question(sample, rubric(language), "compact")
        assert asked.schema is not None
        return asked.messages, next(iter(choices(asked.schema.value)))


def rubric(language: str) -> Rubric:
    definition, *bands = CRITERIA[language]
    listed = [{"score": s, "criteria": text} for s, text in zip(SCORES, bands, strict=True)]
    dimension = {"id": "accuracy", "name": "Accuracy", "definition": definition, "bands": listed}
    return build_rubric({"dimensions": [dimension]})


class Cache:
    """Raw values by key, one JSON line each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, Record] = {}
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            self.known = dict(json.loads(line) for line in lines)

    def of(self, key: str, measure: Callable[[], Record]) -> Record:
        if key not in self.known:
            self.known[key] = measure()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, self.known[key]], ensure_ascii=False) + "\n")
        return self.known[key]


class Bench:
    """A loaded model, asked for everything the report needs about an output."""

    def __init__(self, path: Path, cache: Cache) -> None:
        self.runtime, self.cache = Runtime(path, threads(), lambda: None), cache
        self.prompts = Prompts()

    def run(self, split: str, minutes: float) -> None:
        until = time.monotonic() + 60 * minutes
        for language in LANGUAGES:
            self._output(f"unknown/{language}", language, *UNKNOWN[language])
            self._output(f"N-A/{language}", language, "N/A", "N/A")
        for item in items(split):
            if time.monotonic() > until:
                print("out of time; run again to continue", file=sys.stderr)
                return
            self._output(f"{item.key}/better", item.language, item.question, item.better)
            self._output(f"{item.key}/worse", item.language, item.question, item.worse)

    def _output(self, key: str, language: str, question: str, answer: str) -> None:
        self.cache.of(key, lambda: self._measured(language, question, answer))

    def _measured(self, language: str, question: str, answer: str) -> Record:
        began = time.monotonic()
        messages, choice = self.prompts.about(language, question, answer)
        session = self.runtime.session(messages, Sampling())
        odds = log_odds(session, choice.lead, choice.options)
        scored = time.monotonic()
        lead = choice.lead.removesuffix('"score":') + '"rationale": "'
        said = session.write(session.tokens(lead), limit=32, grammar=grammar(least=1))
        after = f'{lead}{json.dumps(read(said, 200), ensure_ascii=False)[1:-1]}", "score":'
        written = log_odds(session, after, choice.options)
        return {
            "odds": odds,
            "written": written,
            "rationale": said.text,
            "seconds": [scored - began, time.monotonic() - scored],
            "tokens": len(session.prompt),
            "characters": len(answer),
        }


Method = Callable[[Record, str, dict[str, Record]], float]


def _corrected(record: Record, prior: Odds | None) -> Odds:
    choice = Choice(("x",), SCORES)
    before = None if prior is None else {choice.path: tuple(prior)}
    return corrected({choice.path: tuple(record["odds"])}, before, [choice])[choice.path]


def _likeliest(odds: Odds) -> float:
    return float(SCORES[max(range(len(odds)), key=lambda i: odds[i])])


def _median(odds: Odds) -> float:
    return float(decided(Choice(("x",), SCORES), odds, {}))


def _mean(odds: Odds) -> float:
    return sum(s * math.exp(o) for s, o in zip(SCORES, odds, strict=True))


def methods() -> dict[str, Method]:
    """Every way to decide a score that is compared; the second is what ships."""
    found: dict[str, Method] = {"written score": lambda r, _l, _k: _likeliest(tuple(r["written"]))}
    rules = {"median": _median, "likeliest": _likeliest, "mean": _mean}
    for prior, told in (("unknown", "less unknown"), ("N-A", "less N/A"), ("", "raw")):
        for name, rule in rules.items():
            found[f"{name}, {told}"] = _method(rule, prior)
    return found


def _method(rule: Callable[[Odds], float], prior: str) -> Method:
    def score(record: Record, language: str, known: dict[str, Record]) -> float:
        before = known[f"{prior}/{language}"]["odds"] if prior else None
        return rule(_corrected(record, before))

    return score


def wilson(right: float, n: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a proportion; ties count half."""
    if n == 0:
        return (0.0, 1.0)
    z, p = 1.959964, right / n
    middle, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return ((middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n))


class Outcome(NamedTuple):
    """One item judged by one method."""

    item: Item
    better: float
    worse: float

    @property
    def credit(self) -> float:
        return 0.5 if math.isclose(self.better, self.worse) else float(self.better > self.worse)


def outcomes(method: Method, split: str, known: dict[str, Record]) -> list[Outcome]:
    found: list[Outcome] = []
    for item in items(split):
        better, worse = (known.get(f"{item.key}/{side}") for side in ("better", "worse"))
        if better and worse:
            scores = (method(one, item.language, known) for one in (better, worse))
            found.append(Outcome(item, *scores))
    return found


def _share(found: list[Outcome]) -> str:
    if not found:
        return "-"
    right = sum(outcome.credit for outcome in found)
    low, high = wilson(right, len(found))
    return f"{right / len(found):.0%} [{low:.0%}, {high:.0%}] n={len(found)}"


def _balanced(found: list[Outcome]) -> str:
    longer = [o for o in found if len(o.item.better) > len(o.item.worse)]
    shorter = [o for o in found if len(o.item.better) <= len(o.item.worse)]
    if not longer or not shorter:
        return "-"
    shares = [sum(o.credit for o in side) / len(side) for side in (longer, shorter)]
    return f"{sum(shares) / 2:.0%}"


def _absolute(found: list[Outcome]) -> str:
    """Right answers above the middle of the scale, wrong ones at or below it."""
    middle = 3.0
    right = sum(o.better > middle for o in found)
    wrong = sum(o.worse <= middle for o in found)
    return f"{right}+{wrong} of {len(found)}+{len(found)}"


def report(split: str, known: dict[str, Record]) -> None:
    """Print the tables, as Markdown."""
    print(
        "| way to decide | LLMBar Natural | LB | LLMBar Adversarial | LB |\n|---|---|---|---|---|"
    )
    for name, method in methods().items():
        found = outcomes(method, split, known)
        cells = [name]
        for group in ("Natural", "Adversarial"):
            own = [o for o in found if o.item.group == group]
            cells += [_share(own), _balanced(own)]
        print(f"| {' | '.join(cells)} |")
    head = " | ".join(f"{one} ranked | {one} right+wrong" for one in LANGUAGES)
    print(f"\n| way to decide | {head} |\n|{'---|' * (1 + 2 * len(LANGUAGES))}")
    for name, method in methods().items():
        found = outcomes(method, split, known)
        cells = [name]
        for language in LANGUAGES:
            own = [o for o in found if o.item.group == f"easy {language}"]
            cells += [f"{sum(o.credit for o in own):g} of {len(own)}", _absolute(own)]
        print(f"| {' | '.join(cells)} |")
    _timings(known)


def _timings(known: dict[str, Record]) -> None:
    rows = [record for record in known.values() if record["seconds"][0]]
    if rows:
        scored = sorted(row["seconds"][0] for row in rows)
        tokens = sorted(row["tokens"] for row in rows)
        middle = len(rows) // 2
        print(
            f"\n{len(rows)} outputs; median {tokens[middle]} tokens, {scored[middle]:.1f} s a score"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("command", choices=["run", "report"])
    parser.add_argument("--split", choices=["dev", "test"], default="test")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--model", default=models.DEFAULT, help="a name, or a path to a GGUF file")
    parser.add_argument(
        "--cache", type=Path, default=Path(tempfile.gettempdir(), "evenhand_embedded_quality.jsonl")
    )
    given = parser.parse_args()
    cache = Cache(given.cache)
    if given.command == "run":
        path = Path(given.model) if given.model.endswith(".gguf") else models.find(given.model)
        if path is None:
            sys.exit(f"skipped: fetch the model first: evenhand models get {given.model}")
        Bench(path, cache).run(given.split, given.minutes)
    report(given.split, cache.known)


if __name__ == "__main__":
    main()
