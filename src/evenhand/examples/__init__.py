"""Bundled suites, one a protocol and language: what `init` writes and `demo` judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

from evenhand import jsontext
from evenhand.kinds import KINDS
from evenhand.kinds.kind import ExampleSuite
from evenhand.words import Words, words

_SUITE = """\
# {about}
name = {name}
protocol = {protocol}
language = {language}         # ru | zh | ja | en
{data}{rubric}{use}{judged}seed = 7

{answers}{remark}
[[judges]]
model = {judge}

[limits]
concurrency = 16
{budget}budget_usd = "5.00"

{columns}{question}[store]
url = "sqlite:evenhand.db"
"""
EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of a suite, and what stands beside it."""

    name: str
    encoding: str | None = None
    sheet: str | None = None
    prompt_variant: str | None = None

    @property
    def text(self) -> str:
        """As an entry of `data`."""
        beside = {
            "encoding": self.encoding,
            "sheet": self.sheet,
            "prompt_variant": self.prompt_variant,
        }
        keys = [f"{key} = {_quote(value)}" for key, value in beside.items() if value]
        return (
            f"{{ {', '.join([f'file = {_quote(self.name)}', *keys])} }}"
            if keys
            else (_quote(self.name))
        )


class MadeAnswers(NamedTuple):
    """The answers that a suite makes, by the names of their files and models."""

    questions: str
    prompts: Sequence[str]
    models: Sequence[str]

    @property
    def text(self) -> str:
        """As the table `[answers]` of a suite."""
        prompts = f"prompts = {_entries([*map(_quote, self.prompts)])}\n" if self.prompts else ""
        models = f"models = {_entries([*map(_quote, self.models)])}\n"
        return f"[answers]\nquestions = {_quote(self.questions)}\n{prompts}{models}\n"


def suite_text(
    *,
    name: str,
    protocol: str,
    language: str,
    data: Sequence[DataFile],
    rubric: str | None = None,
    judge: str = EMBEDDED,
    columns: Mapping[str, str] | None = None,
    by: str | None = None,
    baseline: str | None = None,
    use: Sequence[str] = (),
    judged: str = "",
    answers: MadeAnswers | None = None,
) -> str:
    """The text of a suite that runs as it is, with its data and rubric beside it; one that makes
    its answers has no other data. `judged` is what of a conversation is judged."""
    is_local = judge.split("/", maxsplit=1)[0].split(":", maxsplit=1)[0] == EMBEDDED
    say = words(language)
    return _SUITE.format(
        name=_quote(name),
        protocol=_quote(protocol),
        language=_quote(language),
        data=f"data = {_entries([file.text for file in data])}\n" if data else "",
        rubric=f"rubric = {_quote(rubric)}\n" if rubric else "",
        use=f"use = [{', '.join(map(_quote, use))}]\n" if use else "",
        judged=f"judged = {_quote(judged):14} # {say('files.suite_judged')}\n" if judged else "",
        answers=answers.text if answers else "",
        about=say("files.suite_about"),
        remark=say("files.suite_local" if is_local else "files.suite_remote"),
        judge=_quote(judge),
        budget="# " if is_local else "",
        columns=_columns(columns or {}, say),
        question=_question(by, baseline),
    )


def _entries(texts: Sequence[str]) -> str:
    """A list of TOML; several entries on lines of their own."""
    if len(texts) == 1:
        return f"[{texts[0]}]"
    return "[\n" + "".join(f"  {text},\n" for text in texts) + "]"


def _quote(text: str) -> str:
    """A text as TOML writes it: JSON's strings are TOML's, but for one control character."""
    return jsontext.dump(text).replace("\x7f", "\\u007f")


def _columns(columns: Mapping[str, str], say: Words) -> str:
    if not columns:
        return ""
    lines = "".join(f"{field} = {_quote(name)}\n" for field, name in columns.items())
    return f"[columns]                       # {say('files.suite_columns')}\n{lines}\n"


def example_files(
    protocol: str, language: str, judge: str = EMBEDDED, *, rubric: str | None = None
) -> dict[str, str]:
    """The files of a bundled suite, by name; its rubric under another one where that is given."""
    folder, example = resources.files("evenhand.examples") / protocol / language, _example(protocol)
    suite = suite_text(
        name=f"example-{protocol}-{language}",
        protocol=protocol,
        language=language,
        data=[DataFile(example.data)],
        rubric=rubric or example.rubric,
        judge=judge,
        by=example.by,
        baseline=example.baseline,
    )
    names = {example.rubric: rubric} if rubric else {}
    texts = {
        names.get(entry.name, entry.name): entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
    }
    return {"evenhand.toml": suite} | dict(sorted(texts.items()))


def example_rubric(protocol: str, language: str) -> str:
    """The text of a bundled suite's rubric."""
    name = _example(protocol).rubric
    assert name is not None
    folder = resources.files("evenhand.examples") / protocol / language
    return (folder / name).read_text(encoding="utf-8")


def _example(protocol: str) -> ExampleSuite:
    return KINDS[protocol].example


def _question(by: str | None, baseline: str | None) -> str:
    """Return the table of the suite that says what is compared."""
    if not by:
        return ""
    held_against = f"baseline = {_quote(baseline)}\n" if baseline else ""
    return (
        f"[compare]                       # evenhand compare\nby = {_quote(by)}\n{held_against}\n"
    )


def example_rows(protocol: str, language: str) -> tuple[list[dict[str, Any]], object]:
    """The rows of a bundled suite, and its rubric; in English where there is none."""
    folder = resources.files("evenhand.examples") / protocol / language
    files = example_files(protocol, language if folder.is_dir() else "en")
    (data,) = (text for name, text in files.items() if name.endswith(".jsonl"))
    rows = [jsontext.parse(line) for line in data.splitlines()]
    for row in rows:
        if "rubric" in row:
            row["rubric"] = files[row["rubric"]]
    rubric = _example(protocol).rubric
    return rows, jsontext.parse(files[rubric]) if rubric else None
