"""Protocols from their folders, built in or the user's own, and the judging they describe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError, nearest, quoted
from evenhand.folders import read_text
from evenhand.kinds import KINDS, load_protocol
from evenhand.kinds.kind import ReadyKind, Terms
from evenhand.kinds.protocol import (
    CUSTOM_PROMPT,
    Protocol,
    ProtocolError,
    kind_named,
)
from evenhand.limits import PROTOCOL_DEPTH, PROTOCOL_FILES
from evenhand.manifest import JudgingRecord


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
        raise UsageError(str(error), where=f"{protocol.name}/{error.file}") from None


def spoken_beside(protocol: Protocol, language: str, where: str = "") -> list[str]:
    """The languages that units may be in where a run is in `language`; raises UsageError. A prompt
    of the user's own is in whatever language the run is."""
    languages = protocol.languages
    if language in languages:
        return languages
    if protocol.custom_prompt is not None:
        return [*languages, language]
    raise UsageError(
        f"the protocol {protocol.name} has no prompt in {quoted(language)}",
        where=where,
        advice=f"It speaks {', '.join(languages) or 'no language yet'}.",
    )


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
            names = ", ".join(builtin_protocols())
            near = nearest(name, builtin_protocols())
            raise UsageError(
                f"no protocol is called {quoted(name)}",
                advice=(f'Did you mean "{near}"? ' if near else "")
                + f"Built in: {names}. Otherwise name a folder with a protocol.toml.",
            )
    texts = dict(_texts(root)) if is_builtin else dict(_folder_texts(root))
    try:
        kind = kind_named(texts, KINDS)
        words = _words(kind, is_custom=not is_builtin)
        return load_protocol(name, {**words, **texts, **(custom_prompt or {})})
    except ProtocolError as error:
        raise UsageError(str(error), where=f"{name}/{error.file}") from None


def _folder_texts(root: Path) -> Iterator[tuple[str, str]]:
    """The files of a protocol that is not ours: none that lies elsewhere, none without end."""
    for number, path in enumerate(_files(root, 0), 1):
        if number > PROTOCOL_FILES:
            raise UsageError(f"a protocol of more than {PROTOCOL_FILES} files", where=str(root))
        yield path.relative_to(root).as_posix(), read_text(path, "a file of the protocol", root)


def _files(folder: Path, depth: int) -> Iterator[Path]:
    if depth > PROTOCOL_DEPTH:
        raise UsageError(
            f"a protocol with more than {PROTOCOL_DEPTH} folders in folders", where=str(folder)
        )
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UsageError(f"the protocol cannot be read: {error}", where=str(folder)) from None
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
    text = read_text(path, "the prompt", root)
    if not text.strip():
        raise UsageError("the prompt is empty", where=str(path))
    return {CUSTOM_PROMPT: text}
