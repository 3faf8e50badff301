"""Problems of a custom protocol, or of a custom prompt, told before it is run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from evenhand.errors import UsageError
from evenhand.files.protocols import find_protocol, read_custom_prompt
from evenhand.files.rubrics import read_rubric
from evenhand.kinds import KINDS
from evenhand.kinds.prompt import CustomPrompt, Prompt, lint_custom_prompt
from evenhand.kinds.protocol import CUSTOM_PROMPT, Protocol, ProtocolError, placeholder_problems

_BESIDE = re.compile(r"(?:words|prompts/compact)/([\w-]+)\.\w+")
"""Files beside the prompt of a language."""


class Finding(NamedTuple):
    """One thing to mend, and the file it stands in."""

    file: str
    message: str


def lint(name: str, folder: Path | None = None) -> list[Finding]:
    """Return what is wrong with a protocol; raise UsageError where there is none."""
    protocol = find_protocol(name, folder)
    findings = [*_languages(protocol), *_placeholders(protocol), *_tables(protocol)]
    root = (folder or Path()) / name
    if root.is_dir():
        findings += _rubrics(protocol, root)
    return list(dict.fromkeys(findings))


def lint_prompt(name: str, path: Path, *, expose_meta: bool = False) -> list[Finding]:
    """Return what the author of a custom prompt should know before it is run under a protocol;
    raises UsageError."""
    protocol = find_protocol(name, custom_prompt=read_custom_prompt(path))
    settings = {**KINDS[protocol.kind].settings, "expose_meta": expose_meta}
    return custom_prompt_findings(protocol, str(path), settings)


def custom_prompt_findings(
    protocol: Protocol, file: str, settings: Mapping[str, Any]
) -> list[Finding]:
    """Return the findings on a protocol's custom prompt; `settings` are those of the run,
    `use` among them where it is known."""
    prompt, form = protocol.custom_prompt, protocol.form.custom_prompt
    if prompt is None or form is None:
        return []
    doubts = lint_custom_prompt(prompt, protocol.kind, form, settings)
    return [Finding(file, doubt) for doubt in doubts]


def protocol_of_prompt(path: Path) -> str:
    """Return the built-in protocol that a prompt is written for, by the words of its contract;
    raises UsageError where none is used most."""
    prompt = CustomPrompt.parse(read_custom_prompt(path)[CUSTOM_PROMPT])
    forms = {name: kind.form.custom_prompt for name, kind in KINDS.items()}
    uses = {name: sum(map(prompt.says, form.marks)) for name, form in forms.items() if form}
    most = [name for name, number in uses.items() if number and number == max(uses.values())]
    if len(most) != 1:
        raise UsageError(
            "the prompt does not show which protocol it is for",
            where=str(path),
            advice=f"Say which: evenhand protocols lint NAME --prompt {path}, NAME one of"
            f" {', '.join(uses)}.",
        )
    return most[0]


def _languages(protocol: Protocol) -> Iterator[Finding]:
    """Yield languages that one part of the protocol speaks and another does not."""
    if not protocol.languages:
        yield Finding("prompts", "there is no prompt; write prompts/<language>.md")
    languages = set(protocol.languages)
    for file in protocol.texts:
        beside = _BESIDE.fullmatch(file)
        if beside and beside[1] not in languages:
            yield Finding(f"prompts/{beside[1]}.md", f"missing: there is {file}")
    for table in protocol.form.tables:
        for row in _rows(protocol, table):
            texts = {key for key in row if re.fullmatch("[a-z]{2,3}", key) and key != "id"}
            for language in sorted(languages - texts):
                yield Finding(
                    "protocol.toml", f"[[{table}]] {row.get('id')} has no text in {language}"
                )
            for language in sorted(texts - languages):
                yield Finding(f"prompts/{language}.md", f"missing: [[{table}]] speaks {language}")


def _rows(protocol: Protocol, table: str) -> list[Mapping[str, Any]]:
    table_rows = protocol.given.get(table)
    rows = cast("Sequence[object]", table_rows) if isinstance(table_rows, list) else []
    return [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, Mapping)]


def _placeholders(protocol: Protocol) -> Iterator[Finding]:
    """Yield prompts that insert too little, something unknown, or not alike in all languages."""
    used: dict[str, frozenset[str]] = {}
    for language in protocol.languages:
        file = f"prompts/{language}.md"
        try:
            prompt = Prompt.parse(protocol.texts[file])
        except ValueError as error:
            yield Finding(file, str(error))
            continue
        used[file] = prompt.user.names | (prompt.system.names if prompt.system else frozenset())
        for fault in placeholder_problems(protocol.form, protocol.kind, prompt):
            yield Finding(file, fault)
    everywhere = frozenset[str]().union(*used.values())
    for file, names in used.items():
        for name in sorted((everywhere & protocol.form.may) - names):
            yield Finding(file, f"{{{{{name}}}}} is missing here and used in another language")


def _tables(protocol: Protocol) -> Iterator[Finding]:
    """Yield what cannot be read of protocol.toml and the words: priorities, weights, ..."""
    kind = KINDS[protocol.kind]
    for language in protocol.languages:
        for reading in (partial(kind.check_protocol, protocol), protocol.words):
            try:
                reading(language)
            except ProtocolError as error:
                yield Finding(error.file, str(error))


def _rubrics(protocol: Protocol, root: Path) -> Iterator[Finding]:
    """Yield rubrics beside the protocol that cannot be read."""
    form = KINDS[protocol.kind].rubric_form
    patterns = form.beside if form else ()
    for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
        try:
            read_rubric(path, protocol, root)
        except UsageError as error:
            yield Finding(path.name, str(error))
