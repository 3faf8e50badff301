"""What a protocol says in one language beyond its prompt: fixed phrases, each breach in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from evenhand import jsontext
from evenhand.errors import quoted
from evenhand.judgment import Problem, Reason

FIELDS = ("path", "value", "allowed", "quote", "phrase")


class Words(Struct, frozen=True, kw_only=True):
    """The phrases of one language. A problem is worded in English for people and logs, and in the
    protocol's language for the judge."""

    problems: Mapping[str, str]
    types: Mapping[str, str]
    neutral: Mapping[str, str]
    """A unit that nobody can judge."""
    english: Mapping[str, str]
    english_types: Mapping[str, str]
    phrases: Mapping[str, str] = {}
    """What else a kind says, by name."""
    language: str = ""
    """The language that the prompt speaks; empty where that cannot be told."""

    @property
    def tags(self) -> dict[str, str]:
        """The failure tags, each with its name."""
        places = ((name.partition(".")[2], name) for name in self.phrases if name[:5] == "tags.")
        return {tag: self.phrases[place] for tag, place in places}

    @property
    def no_evidence(self) -> str:
        return self.phrases["no_evidence"]

    @property
    def copy_meta(self) -> str:
        return self.phrases["copy_meta"]

    def calling(self, names: Mapping[str, str]) -> Words:
        """The same words with other names for what a prompt shows, where it calls it otherwise."""
        changed = {name: label for name, label in names.items() if name != label}
        problems = {kind: _renamed(text, changed) for kind, text in self.problems.items()}
        return replace(self, problems=problems) if changed else self

    def problem(self, kind: str, code: Reason, path: str = "", **about: object) -> Problem:
        """One breach, worded twice. What the judge quoted stands in quotation marks, what it wrote
        as a value is shown as it wrote it."""
        fields = dict.fromkeys(FIELDS, "") | {k: quoted(v)[1:-1] for k, v in about.items()}
        path = quoted(path)[1:-1]
        fields |= {"path": path, "quote": f'"{fields["quote"]}"'}
        return Problem(
            code=code,
            path=path,
            message=self.english[kind].format_map(fields),
            wording=self.problems[kind].format_map(fields),
        )

    def wrong_type(self, name: str, path: str, value: object) -> Problem:
        """A breach by a value of another type than the named one, of which each wording has its
        own word."""
        written = _beginning(jsontext.dump(value))
        problem, english = (
            self.problem("wrong_type", "schema", path, value=written, allowed=types[name])
            for types in (self.types, self.english_types)
        )
        return replace(problem, message=english.message)

    def complaint(self, problems: Iterable[Problem]) -> str:
        """The list of what is wrong, as the judge is told."""
        return "\n".join(f"- {problem.wording}" for problem in problems)


_VALUE_CHARS = 60
"""So much of a value of the wrong type tells which one is meant: all of it may be the reply."""


def _beginning(text: str) -> str:
    return text if len(text) <= _VALUE_CHARS else text[: _VALUE_CHARS - 1] + "…"


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """A wording with the names of blocks, which stand in backticks, replaced."""
    for name, label in names.items():
        literal = label.replace("{", "{{").replace("}", "}}").replace("`", "'")
        text = text.replace(f"`{name}`", f"`{literal}`")
    return text
