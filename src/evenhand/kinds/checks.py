"""Checks by code: conditions of a suite on each judged output, decided without a call.

A check that a judgment fails is one of its flags: observations are rebuilt from these, so no check
is decided twice. Patterns and schemas are written by others, so that their size and the time that
they take are bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NoReturn

from msgspec import Struct

from evenhand import jsontext
from evenhand.kinds.conditions import (
    CodeCondition,
    ConditionError,
    TimedOut,
    check_pattern,
    decide,
)
from evenhand.observation import CheckOutcome
from evenhand.words import Sentence

FAILED, UNDECIDED = "check_failed:", "check_undecided:"
"""Begin the flags of a judgment that name a check."""
_TEXTS = ("contains", "not_contains", "starts_with")
_PATTERNS = {"regex": "must_match", "not_regex": "must_not_match"}
_LENGTHS = ("max_chars", "min_chars")
_SCHEMA_REFS = 40
"""References of a schema: with many more, a few lines can ask for hours."""
_REFERENCE = re.compile(r'"\$\w*[rR]ef":')


class Check(Struct, frozen=True, kw_only=True):
    """A condition on an output, as a suite writes it."""

    name: str
    type: str
    value: Any = None
    must: bool = False
    first: bool = False
    """True if the judge is spared where it fails; then it must be met, too."""

    @property
    def is_needed(self) -> bool:
        """Return True if no output passes that fails it."""
        return self.must or self.first


def require_valid(check: Check) -> None:
    """Raise ConditionError for a check that cannot be decided as it is written."""
    value, name = check.value, check.type
    if name in _TEXTS and not (isinstance(value, str) and value):
        raise ConditionError(Sentence("kinds.check_text", name=name))
    if name == "equals" and not isinstance(value, str | None):
        raise ConditionError(Sentence("kinds.check_text", name=name))
    if name == "is_json" and value is not None:
        raise ConditionError(Sentence("kinds.check_no_value", name=name))
    if name in _LENGTHS and (not isinstance(value, int) or value < 0):
        raise ConditionError(Sentence("kinds.no_limit", name=name, value=value))
    if name in _PATTERNS:
        if not isinstance(value, str):
            raise ConditionError(Sentence("kinds.check_text", name=name))
        check_pattern(value)
    if name == "json_schema":
        _require_schema(value)


def flag_output(checks: Iterable[Check], output: str, reference: object) -> list[str]:
    """Return the flags of an output: the checks that it fails, and those that nobody can decide."""
    flags: list[str] = []
    for check in checks:
        is_met = meets(check, output, reference)
        if not is_met:
            flags.append(f"{UNDECIDED if is_met is None else FAILED}{check.name}")
    return flags


def check_outcomes(checks: Iterable[Check], flags: Iterable[str]) -> list[CheckOutcome]:
    """Return the outcome of each check of a judgment with these flags."""
    given = set(flags)
    return [
        CheckOutcome(
            check.name,
            None if f"{UNDECIDED}{check.name}" in given else f"{FAILED}{check.name}" not in given,
            check.is_needed,
        )
        for check in checks
    ]


def meets(check: Check, output: str, reference: object = None) -> bool | None:
    """Return True if an output meets a check; None where that cannot be decided: there is no
    reference, or a pattern does not end in time. White space around the output does not count where
    its beginning or all of it is compared."""
    value = check.value
    match check.type:
        case "contains":
            return value in output
        case "not_contains":
            return value not in output
        case "starts_with":
            return output.lstrip().startswith(value)
        case "equals":
            expected = reference if value is None else value
            return (
                None if expected is None else output.strip() == jsontext.as_text(expected).strip()
            )
        case "is_json" | "json_schema":
            schema = None if value is None else _validator(jsontext.dump(value))
            try:
                jsontext.parse(output)
                return schema is None or schema.is_valid(json.loads(output))
            except ValueError:
                return False
    if check.type in _PATTERNS:
        condition = CodeCondition(_PATTERNS[check.type], 0, value)
    else:
        condition = CodeCondition(check.type, 0, limit=value)
    decision = decide([condition], output)
    return None if isinstance(decision, TimedOut) else decision is None


def _require_schema(schema: object) -> None:
    try:
        text = jsontext.dump(schema)
        if not isinstance(schema, dict) or len(_REFERENCE.findall(text)) > _SCHEMA_REFS:
            raise ConditionError(Sentence("kinds.check_schema", most=_SCHEMA_REFS))
        _validator(text)
    except ImportError:
        raise ConditionError(Sentence("kinds.no_jsonschema")) from None
    except ConditionError:
        raise
    except (TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise ConditionError(Sentence("kinds.bad_schema", error=reason)) from None


@lru_cache(maxsize=64)
def _validator(schema: str) -> Any:
    """Return the validator of a schema, which fetches nothing and whose patterns take linear
    time."""
    import jsonschema_rs  # here: it is an extra

    def refuse(uri: str) -> NoReturn:
        raise ValueError(uri)

    patterns = jsonschema_rs.RegexOptions()
    value = json.loads(schema)
    return jsonschema_rs.validator_for(value, retriever=refuse, pattern_options=patterns)
