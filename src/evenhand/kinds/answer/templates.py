"""The prompts under test: templates that the columns of a question fill."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from evenhand.exchange import Message, Role
from evenhand.jsontext import as_text
from evenhand.kinds.prompt import CustomPrompt, placeholder_name, unknown

_SECTION = re.compile(r"^<!-- (system|user) -->[ \t]*\n", re.MULTILINE)
QUESTION = "question"
QUESTION_COLUMN = "#question"
"""The key of a row for what its table calls the question."""
ROW_KEYS = ("id", QUESTION_COLUMN)
"""The keys of a row that are no columns of its table."""


class AnswerTemplate(NamedTuple):
    """One prompt: what the model is told as system and as user; "" for a part that is not there."""

    system: CustomPrompt
    user: CustomPrompt

    @classmethod
    def parse(cls, text: str) -> AnswerTemplate:
        """Return the template of a file. Without sections all of it is the user's turn; with a
        system section alone, that turn is the question."""
        before, *pieces = _SECTION.split(text)
        sections = dict(zip(pieces[::2], pieces[1::2], strict=True))
        user = sections.get("user", before).strip() or f"{{{{{QUESTION}}}}}"
        return cls(CustomPrompt.parse(sections.get("system", "")), CustomPrompt.parse(user))

    def fill_row(self, row: Mapping[str, object]) -> tuple[Message, ...]:
        """Return the turns for the question of a row; raise ValueError for a placeholder that none
        of its columns fills."""
        columns = {name: value for name, value in row.items() if name not in ROW_KEYS}
        values = {str(row.get(QUESTION_COLUMN) or QUESTION): row[QUESTION], **columns}
        by_name = {placeholder_name(name): as_text(value) for name, value in values.items()}
        roles: tuple[tuple[Role, CustomPrompt], ...] = (
            ("system", self.system),
            ("user", self.user),
        )
        filled = [(role, _fill(part, by_name, values)) for role, part in roles]
        return tuple(Message(role, text) for role, text in filled if text)


def _fill(prompt: CustomPrompt, by_name: Mapping[str, str], columns: Mapping[str, object]) -> str:
    parts = list(prompt.parts)
    for index in range(1, len(parts), 2):
        name = placeholder_name(parts[index])
        if name not in by_name:
            raise ValueError(unknown("column", name, list(columns), placeholder=parts[index]))
        parts[index] = by_name[name]
    return "".join(parts)
