"""A protocol from the texts of its folder: `protocol.toml`, `prompts/<language>.md`,
`prompts/compact/<language>.md`, `words/<language>.toml`. Where a folder brings no words of its own
those of its kind count, `words/kind/<language>.toml`, and of all kinds, `words/common/...`.

Pure: whoever calls has read the files. The texts' hash is the protocol's version, stored with
every judgment.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace as replace_prompt
from functools import lru_cache
from hashlib import blake2b
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from evenhand.errors import quote
from evenhand.exchange import Style
from evenhand.judgment import Problem, Reason
from evenhand.kinds.prompt import CustomForm, CustomPrompt, Prompt, Template, unknown
from evenhand.observation import RESERVED
from evenhand.tomltext import TomlError, parse_toml
from evenhand.words import Code, Names, Sentence

FIELDS = ("path", "value", "allowed", "quote", "phrase")


class JudgeWords(Struct, frozen=True, kw_only=True):
    """The phrases of one language. A problem is worded in English for people and logs, and in the
    protocol's language for the judge."""

    problems: Mapping[str, str]
    types: Mapping[str, str]
    neutral: Mapping[str, str]
    """A unit that nobody can judge."""
    english: Mapping[str, str]
    english_types: Mapping[str, str]
    phrases: Mapping[str, str] = {}
    """Other phrases of a kind, by name."""

    @property
    def tags(self) -> dict[str, str]:
        """The failure tags, each with its name."""
        named = self.phrases.items()
        return {name.removeprefix("tags."): text for name, text in named if name[:5] == "tags."}

    @property
    def no_evidence(self) -> str:
        return self.phrases["no_evidence"]

    def with_names(self, names: Mapping[str, str]) -> JudgeWords:
        """Return the words with other names for what a prompt shows: in a problem they stand in
        backticks."""
        problems = dict(self.problems)
        for name, label in names.items():
            literal = label.replace("{", "{{").replace("}", "}}").replace("`", "'")
            for key, text in problems.items():
                problems[key] = text.replace(f"`{name}`", f"`{literal}`")
        return replace(self, problems=problems)

    def problem(
        self, name: str, code: Reason, path: str = "", json_type: str = "", **about: object
    ) -> Problem:
        """Return a problem, worded twice. What the judge quoted stands in quotation marks, what it
        wrote as a value is shown as it wrote it; `json_type` is the one that was asked for."""
        fields = dict.fromkeys(FIELDS, "") | {key: _escape(value) for key, value in about.items()}
        fields |= {"path": _escape(path), "quote": f'"{fields["quote"]}"'}

        def word(problems: Mapping[str, str], types: Mapping[str, str]) -> str:
            allowed = {"allowed": types[json_type]} if json_type else {}
            return problems[name].format_map(fields | allowed)

        return Problem(
            code=code,
            path=fields["path"],
            message=word(self.english, self.english_types),
            wording=word(self.problems, self.types),
        )


def _escape(value: object) -> str:
    return quote(value)[1:-1]


LANGUAGES = ("ru", "zh", "ja", "en")
PROTOCOL_FILE = "protocol.toml"
CUSTOM_PROMPT = "own.md"
"""The user's own judge prompt, among the texts of a protocol."""
_FORMLESS = "problems_of_any_form"
"""Wordings of problems that do not take a JSON object for granted."""
_ID = re.compile(r"(?=.*\S)[^|.\n]{1,64}")
_PROMPT = re.compile(r"prompts/([\w-]+)\.md")


class ProtocolError(ValueError):
    """A protocol that is wrong, and in which of its files."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(message)
        self.file = file


class ProtocolForm(Struct, frozen=True, kw_only=True):
    """The parts that the protocols of one kind may have, and must."""

    keys: tuple[str, ...] = ()
    """Keys of `protocol.toml` beside `kind` and `about`."""
    tables: tuple[str, ...] = ()
    """Those of them that are tables of rows, each with an id and a text in every language."""
    must: frozenset[str]
    """Placeholders that a prompt must have, or the judge would not see the unit."""
    may: frozenset[str] = frozenset()
    """Other placeholders of a prompt."""
    custom_prompt: CustomForm | None = None
    """Those of a custom prompt."""


class Protocol(Struct, frozen=True, kw_only=True):
    """The texts of one protocol, parsed as far as they do not depend on a language."""

    name: str
    kind: str
    form: ProtocolForm
    about: str
    texts: Mapping[str, str]
    given: Mapping[str, Any]
    """The values of `protocol.toml`."""

    @property
    def version(self) -> str:
        """The hash of all its texts."""
        digest = blake2b(digest_size=16)
        for file, text in sorted(self.texts.items()):
            digest.update(f"{len(file)}:{file}{len(text)}:".encode() + text.encode())
        return f"protocol1-blake2b:{digest.hexdigest()}"

    @property
    def languages(self) -> list[str]:
        """The languages that it has a prompt in, those of the built-in protocols first."""
        matches = filter(None, map(_PROMPT.fullmatch, self.texts))
        spoken = {language[1] for language in matches}
        return [
            *(language for language in LANGUAGES if language in spoken),
            *sorted(spoken - set(LANGUAGES)),
        ]

    @property
    def custom_prompt(self) -> CustomPrompt | None:
        """The user's own prompt, where the suite names one."""
        text = self.texts.get(CUSTOM_PROMPT)
        return None if text is None else CustomPrompt.parse(text)

    def prompts(self, language: str) -> dict[Style, Prompt]:
        """Return the prompts in one language; a style without a file of its own uses the full one.
        Where they may ask for another form than JSON, a re-ask names no form; of a custom prompt it
        is all that is needed."""
        again = None
        if self._is_of_any_form:
            again = Template.parse(self.words(language).phrases["again"])
        if again and self.custom_prompt:
            empty = Prompt(None, Template(()), again)
            return {"full": empty, "compact": empty}
        full = self._prompt(f"prompts/{language}.md", again)
        compact = f"prompts/compact/{language}.md"
        return {
            "full": full,
            "compact": self._prompt(compact, again) if compact in self.texts else full,
        }

    def prepare(self, language: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the prepared protocols of all kinds have, by name; raise ProtocolError."""
        return {
            "prompts": self.prompts(language),
            "words": self.words(language),
            "repairs": settings["repairs"],
            "use": tuple(settings["use"]),
            "judged": settings.get("judged", "last"),
            "custom_prompt": self.custom_prompt,
        }

    @property
    def _is_of_any_form(self) -> bool:
        """Return True if the prompts may ask for another form than JSON."""
        return self.custom_prompt is not None or self.given.get("reply") == "table"

    def _prompt(self, file: str, again: Template | None) -> Prompt:
        if file not in self.texts:
            raise ProtocolError(file, Sentence("kinds.no_prompt"))
        try:
            prompt = Prompt.parse(self.texts[file])
        except ValueError as error:
            raise ProtocolError(file, error.args[0]) from None
        for problem in placeholder_problems(self.form, self.kind, prompt):
            raise ProtocolError(file, problem)
        return replace_prompt(prompt, again=again) if again else prompt

    def read_table(self, table: str, language: str) -> dict[str, str]:
        """Return the id of each row of a table, and its text in one language; raise ProtocolError.
        Beside a custom prompt, which says such things itself, the English text will do."""
        rows = self.given.get(table)
        if not isinstance(rows, list) or not rows:
            raise ProtocolError(
                PROTOCOL_FILE, Sentence("kinds.no_table", kind=self.kind, table=table)
            )
        texts: dict[str, str] = {}
        for number, row in enumerate(rows, 1):
            values = cast("Mapping[str, Any]", row) if isinstance(row, Mapping) else {}
            name, text = values.get("id"), values.get(language)
            if text is None and CUSTOM_PROMPT in self.texts:
                text = values.get("en") or name
            if not isinstance(name, str) or not _ID.fullmatch(name):
                raise ProtocolError(
                    PROTOCOL_FILE, Sentence("kinds.no_id", table=table, number=number)
                )
            if name in RESERVED:
                raise ProtocolError(PROTOCOL_FILE, Sentence("kinds.reserved_id", name=name))
            if name in texts:
                raise ProtocolError(
                    PROTOCOL_FILE, Sentence("kinds.same_id", table=table, name=name)
                )
            if not isinstance(text, str) or not text.strip():
                message = Sentence("kinds.no_row_text", table=table, name=name, language=language)
                raise ProtocolError(PROTOCOL_FILE, message)
            texts[name] = text.strip()
        return texts

    def rows(self, table: str) -> list[Mapping[str, Any]]:
        """Return the rows of one of its tables that have an id."""
        rows = self.given.get(table)
        values = cast("list[object]", rows) if isinstance(rows, list) else []
        tables = [cast("Mapping[str, Any]", row) for row in values if isinstance(row, Mapping)]
        return [row for row in tables if "id" in row]

    def ids(self, table: str) -> list[str]:
        """Return the ids in one of its tables, whatever its languages are."""
        return [str(row["id"]) for row in self.rows(table)]

    def words(self, language: str) -> JudgeWords:
        """Return the fixed phrases in one language; beside a custom prompt, in its names."""
        english = self._read_words("en")
        texts = _overlay(english, self._read_words(language))
        if "tags" in self.given:
            meanings = ((row["id"], row.get("meaning")) for row in self.rows("tags"))
            texts["tags"] = self.read_table("tags", language)
            texts["tag_meanings"] = {
                name: str(meaning.get(language, "")) if isinstance(meaning, Mapping) else ""
                for name, meaning in meanings
            }
        try:
            words = JudgeWords(
                problems=texts["problems"],
                types=texts["types"],
                neutral=texts.get("neutral", {}),
                english=english["problems"],
                english_types=english["types"],
                phrases=dict(_flatten(texts)),
            )
        except KeyError as key:
            missing = Sentence("kinds.missing_key", key=key.args[0])
            raise ProtocolError(f"words/{language}.toml", missing) from None
        custom_prompt, form = self.custom_prompt, self.form.custom_prompt
        return words.with_names(custom_prompt.part_names(form)) if custom_prompt and form else words

    def _read_words(self, language: str) -> dict[str, Any]:
        """Return the protocol's own words over those of its kind, and of all kinds."""
        texts: dict[str, Any] = {}
        for folder in ("words/common", "words/kind", "words"):
            file = f"{folder}/{language}.toml"
            if file in self.texts:
                texts = _overlay(texts, protocol_toml(file, self.texts[file]))
        formless = texts.pop(_FORMLESS, {})
        return _overlay(texts, {"problems": formless}) if self._is_of_any_form else texts


def _overlay(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return one set of words over another: what the upper one leaves out, the lower one says."""
    joined = dict(under)
    for name, value in over.items():
        joined[name] = joined.get(name, {}) | value if isinstance(value, dict) else value
    return joined


def _flatten(texts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield phrases by their names; those in a table by its name and theirs."""
    for name, value in texts.items():
        if isinstance(value, str):
            yield name, value
        elif name not in ("problems", "types", "neutral"):
            yield from ((f"{name}.{inner}", text) for inner, text in value.items())


@lru_cache(maxsize=64)
def protocol_toml(file: str, text: str) -> Mapping[str, Any]:
    """Return the values of a TOML text, not to be changed; raise ProtocolError naming the file.
    The English words stand under those of every language: one text is asked for again and again."""
    try:
        return parse_toml(text)
    except TomlError as error:
        raise ProtocolError(file, error.args[0]) from None


def read_pass_mark(protocol: Protocol, name: str, most: float) -> float | None:
    """Return the lowest score that passes, from 0 to `most`, where a protocol says one; raise
    ProtocolError."""
    mark = protocol.given.get(name)
    is_number = isinstance(mark, int | float) and not isinstance(mark, bool)
    if mark is not None and not (is_number and 0 <= mark <= most):
        message = Sentence("kinds.no_pass_score", name=name, low=0, high=most)
        raise ProtocolError(PROTOCOL_FILE, message)
    return mark


def require_same_ids(protocol: Protocol, asked: Protocol, table: str) -> None:
    """Raise ProtocolError for rules about other things than those that replies speak of."""
    ids, asked_ids = protocol.ids(table), asked.ids(table)
    if set(ids) != set(asked_ids):
        message = Sentence("kinds.other_ids", table=table, ids=Names(ids), asked=Names(asked_ids))
        raise ProtocolError(PROTOCOL_FILE, message)


def kind_named(texts: Mapping[str, str], kinds: Collection[str]) -> str:
    """Return the kind that a protocol says it is of; raise ProtocolError if there is no such."""
    if PROTOCOL_FILE not in texts:
        raise ProtocolError(PROTOCOL_FILE, Sentence("kinds.no_protocol_file"))
    kind = protocol_toml(PROTOCOL_FILE, texts[PROTOCOL_FILE]).get("kind")
    if kind not in kinds:
        raise ProtocolError(
            PROTOCOL_FILE, Sentence("kinds.unknown_kind", kinds=Code(", ".join(kinds)))
        )
    return str(kind)


def protocol_of(name: str, kind: str, form: ProtocolForm, texts: Mapping[str, str]) -> Protocol:
    """Return the protocol of these texts, which are of a kind and have its form; raise
    ProtocolError also for keys that the kind does not have: mistyped, they would go unheard."""
    values = protocol_toml(PROTOCOL_FILE, texts[PROTOCOL_FILE])
    keys = ("kind", "about", *form.keys)
    for key in values:
        if key not in keys:
            raise ProtocolError(PROTOCOL_FILE, unknown("key", key, keys))
    about = str(values.get("about", ""))
    return Protocol(name=name, kind=kind, form=form, about=about, texts=texts, given=values)


def placeholder_problems(form: ProtocolForm, kind: str, prompt: Prompt) -> Iterator[str]:
    """Yield what a prompt inserts too little, or that nothing fills."""
    used = prompt.user.names | (prompt.system.names if prompt.system else frozenset())
    for name in sorted(form.must - used):
        yield Sentence("kinds.missing_placeholder", name=name)
    for name in sorted(used - form.must - form.may):
        yield Sentence("kinds.no_placeholder", name=name, kind=kind)
    if "problems" not in prompt.again.names:
        yield Sentence("kinds.no_problems")
