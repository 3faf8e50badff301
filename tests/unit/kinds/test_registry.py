"""What the registry promises of every kind that it lists."""

from __future__ import annotations

import pytest

from evenhand.examples import example_files
from evenhand.files.protocols import builtin_protocols, find_protocol
from evenhand.kinds import KINDS
from evenhand.kinds.kind import Scoring, Voting
from evenhand.suite_file import Settings


def test_the_settings_of_all_kinds_are_those_of_a_suite() -> None:
    every: dict[str, object] = {}
    for kind in KINDS.values():
        assert all(every.get(name, value) == value for name, value in kind.settings.items())
        every |= kind.settings
    assert every == Settings().model_dump()


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_brings_its_protocol_its_example_and_what_statistics_take_of_it(name: str) -> None:
    kind = KINDS[name]
    assert kind.name == name and name in builtin_protocols()
    protocol = find_protocol(name)
    assert (protocol.kind, protocol.form) == (name, kind.form)
    assert set(kind.form.tables) <= set(kind.form.keys)
    for language in protocol.languages:
        kind.check_protocol(protocol, language)
        files = example_files(name, language)
        assert kind.example.data in files
        assert kind.example.rubric is None or kind.example.rubric in files
    assert isinstance(kind.measure, Scoring | Voting)
