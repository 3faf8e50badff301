"""Protocols from their folders, built in or the user's own, the judging they describe, and what is
wrong with a custom one or with a custom prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, cast

from evenhand.errors import UsageError
from evenhand.files.rubrics import read_rubric
from evenhand.folders import read_text
from evenhand.kinds import KINDS, load_protocol
from evenhand.kinds.kind import ReadyKind, Terms
from evenhand.kinds.prompt import CustomPrompt, Prompt, lint_custom_prompt
from evenhand.kinds.protocol import (
    CUSTOM_PROMPT,
    Protocol,
    ProtocolError,
    kind_named,
    placeholder_problems,
)
from evenhand.limits import PROTOCOL_DEPTH, PROTOCOL_FILES
from evenhand.manifest import JudgingRecord
from evenhand.words import Names, Sentence


def judging_of(protocol: Protocol, record: JudgingRecord) -> ReadyKind:
    """Return the kind made ready as a record describes it; raises UsageError."""
    terms = Terms(
        language=record.language,
        languages=spoken_beside(protocol, record.language),
        seed=record.seed,
        rubric=record.rubric,
        settings=record.settings,
    )
    try:
        return ReadyKind(KINDS[protocol.kind], protocol, terms)
    except ProtocolError as error:
        raise UsageError(error.args[0], where=f"{protocol.name}/{error.file}") from None


def spoken_beside(protocol: Protocol, language: str, where: str = "") -> list[str]:
    """The languages that units may be in where a run is in `language`; raises UsageError. A prompt
    of the user's own is in whatever language the run is."""
    languages = protocol.languages
    if language in languages:
        return languages
    if protocol.custom_prompt is not None:
        return [*languages, language]
    known = {"protocol": protocol.name, "languages": Names(languages)}
    raise UsageError(Sentence("files.no_language", language=language, **known), where=where)


def builtin_protocols() -> list[str]:
    """The names of the protocols that come with the package."""
    folder = resources.files("evenhand.kinds") / "builtin"
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())


def find_protocol(
    name: str, folder: Path | None = None, custom_prompt: Mapping[str, str] | None = None
) -> Protocol:
    """Return a built-in protocol, or the one in a folder, with the texts of `read_custom_prompt`
    where the user has a prompt; raises UsageError with the file."""
    is_builtin = name in builtin_protocols()
    if is_builtin:
        root: Any = resources.files("evenhand.kinds") / "builtin" / name
    else:
        root = (folder or Path()) / name
        if not root.is_dir():
            names = Names(builtin_protocols())
            raise UsageError(Sentence("files.no_protocol", name=name, names=names))
    texts = dict(_texts(root)) if is_builtin else dict(_folder_texts(root))
    try:
        kind = kind_named(texts, KINDS)
        words = _words(kind, is_custom=not is_builtin)
        return load_protocol(name, {**words, **texts, **(custom_prompt or {})})
    except ProtocolError as error:
        raise UsageError(error.args[0], where=f"{name}/{error.file}") from None


def _folder_texts(root: Path) -> Iterator[tuple[str, str]]:
    """The files of a protocol that is not ours: none that lies elsewhere, none without end."""
    for number, path in enumerate(_files(root, 0), 1):
        if number > PROTOCOL_FILES:
            what = Sentence("files.too_many_files", most=PROTOCOL_FILES)
            raise UsageError(what, where=str(root))
        yield path.relative_to(root).as_posix(), read_text(path, root)


def _files(folder: Path, depth: int) -> Iterator[Path]:
    if depth > PROTOCOL_DEPTH:
        raise UsageError(Sentence("files.too_deep", most=PROTOCOL_DEPTH), where=str(folder))
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(Sentence("files.bad_folder", reason=error), where=str(folder)) from None
    for entry in entries:
        if entry.is_dir():
            yield from _files(entry, depth + 1)
        elif entry.name.endswith((".toml", ".md")):
            yield entry


def protocol_texts(name: str) -> dict[str, str]:
    """The files of a built-in protocol, by name."""
    return dict(_texts(resources.files("evenhand.kinds") / "builtin" / name))


def _words(kind: str, *, is_custom: bool) -> dict[str, str]:
    """Return the words of all kinds; for a custom protocol, also those of its kind."""
    root = resources.files("evenhand.kinds")
    texts = dict(_texts(root / "common", "words/common/"))
    if is_custom and (root / "builtin" / kind).is_dir():
        texts |= _texts(root / "builtin" / kind / "words", "words/kind/")
    return texts


def _texts(root: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for entry in root.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _texts(entry, f"{name}/")
        elif entry.name.endswith((".toml", ".md")):
            yield name, entry.read_text(encoding="utf-8")


def read_custom_prompt(path: Path, root: Path | None = None) -> dict[str, str]:
    """Return a custom judge prompt as a text of its protocol; raises UsageError. With a root, it
    must lie in that folder."""
    text = read_text(path, root)
    if not text.strip():
        raise UsageError(Sentence("files.empty_prompt"), where=str(path))
    return {CUSTOM_PROMPT: text}


# Linting

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
        what = Sentence("files.prompt_of_none", path=path, names=Names(list(uses)))
        raise UsageError(what, where=str(path))
    return most[0]


def _languages(protocol: Protocol) -> Iterator[Finding]:
    """Yield languages that one part of the protocol speaks and another does not."""
    if not protocol.languages:
        yield Finding("prompts", Sentence("files.no_prompts"))
    languages = set(protocol.languages)
    for file in protocol.texts:
        beside = _BESIDE.fullmatch(file)
        if beside and beside[1] not in languages:
            yield Finding(f"prompts/{beside[1]}.md", Sentence("files.missing_beside", file=file))
    for table in protocol.form.tables:
        for row in _rows(protocol, table):
            texts = {key for key in row if re.fullmatch("[a-z]{2,3}", key) and key != "id"}
            for language in sorted(languages - texts):
                about = {"table": table, "id": row.get("id"), "language": language}
                yield Finding("protocol.toml", Sentence("files.entry_without_text", **about))
            for language in sorted(texts - languages):
                yield Finding(
                    f"prompts/{language}.md", Sentence("files.missing_prompt", table=table)
                )


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
            yield Finding(file, error.args[0])
            continue
        used[file] = prompt.user.names | (prompt.system.names if prompt.system else frozenset())
        for fault in placeholder_problems(protocol.form, protocol.kind, prompt):
            yield Finding(file, fault)
    everywhere = frozenset[str]().union(*used.values())
    for file, names in used.items():
        for name in sorted((everywhere & protocol.form.may) - names):
            yield Finding(file, Sentence("files.missing_place", name=name))


def _tables(protocol: Protocol) -> Iterator[Finding]:
    """Yield what cannot be read of protocol.toml and the words: priorities, weights, ..."""
    kind = KINDS[protocol.kind]
    for language in protocol.languages:
        for reading in (partial(kind.check_protocol, protocol), protocol.words):
            try:
                reading(language)
            except ProtocolError as error:
                yield Finding(error.file, error.args[0])


def _rubrics(protocol: Protocol, root: Path) -> Iterator[Finding]:
    """Yield rubrics beside the protocol that cannot be read."""
    form = KINDS[protocol.kind].rubric_form
    patterns = form.beside if form else ()
    for path in sorted(path for pattern in patterns for path in root.glob(pattern)):
        try:
            read_rubric(path, protocol, root)
        except UsageError as error:
            yield Finding(Path(error.where).name, error.what)
