"""A protocol from the texts of its folder, and what each kind brings."""

import pytest

from evenhand.examples import example_files
from evenhand.files.protocols import builtin_protocols, find_protocol
from evenhand.kinds import KINDS, load_protocol
from evenhand.kinds.kind import Scoring, Voting
from evenhand.kinds.protocol import LANGUAGES, ProtocolError
from evenhand.suite_file import Settings
from tests.sentences import refused

TEXTS = dict(find_protocol("rubric").texts)


def test_the_built_in_protocol_speaks_every_language():
    protocol = load_protocol("rubric", TEXTS)
    assert (protocol.kind, tuple(protocol.languages)) == ("rubric", LANGUAGES)
    for language in LANGUAGES:
        assert set(protocol.prompts(language)) == {"full", "compact"}
        assert protocol.words(language).english == protocol.words("en").problems


def test_any_change_of_any_text_is_another_version():
    versions = {load_protocol("rubric", TEXTS).version}
    for file, text in TEXTS.items():
        versions.add(load_protocol("rubric", TEXTS | {file: text + "\n"}).version)
    assert len(versions) == len(TEXTS) + 1
    assert load_protocol("other", dict(reversed(TEXTS.items()))).version in versions


def test_a_style_without_a_prompt_of_its_own_uses_the_full_one():
    few = {file: text for file, text in TEXTS.items() if "compact" not in file}
    prompts = load_protocol("mine", few).prompts("en")
    assert prompts["compact"] is prompts["full"]


def broken(file, text):
    return {f: t for f, t in (TEXTS | {file: text}).items() if t is not None}


@pytest.mark.parametrize(
    ("file", "text", "key"),
    [
        ("protocol.toml", None, "no_protocol_file"),
        ("protocol.toml", "kind = ", "not_toml"),
        ("protocol.toml", 'kind = "poetry"', "unknown_kind"),
        ("prompts/en.md", None, "no_prompt"),
        ("prompts/en.md", "no sections", "no_section"),
        ("words/en.toml", "[problems", "not_toml"),
        ("protocol.toml", "deep = " + "[" * 10**4, "toml_depth"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_names_its_file(file, text, key):
    with refused(ProtocolError, f"kinds.{key}") as caught:
        protocol = load_protocol("mine", broken(file, text))
        protocol.prompts("en")
        protocol.words("en")
    assert caught.value.file == file


def test_the_settings_of_all_kinds_are_those_of_a_suite():
    every = {}
    for kind in KINDS.values():
        assert all(every.get(name, value) == value for name, value in kind.settings.items())
        every |= kind.settings
    assert every == Settings().model_dump()


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_brings_its_protocol_its_example_and_what_statistics_take_of_it(name):
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
