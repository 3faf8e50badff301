"""The suite file: who wins, and where what is wrong stands."""

from __future__ import annotations

from decimal import Decimal

from evenhand import limits
from evenhand.errors import UsageError
from evenhand.suite import load_suite
from evenhand.suite_file import suite_schema
from evenhand.tomltext import find_line
from tests.cases import cases
from tests.sentences import refused

SUITE = """\
name = "mine"
protocol = "rubric"
data = ["samples.jsonl"]

[[judges]]
model = "embedded"

[[judges]]
model = "openai/x"
repeats = 2

[limits]
concurrency = 8
budget_usd = "5.00"
"""


def load(folder, text=SUITE, overrides=None, **environment):
    (folder / "evenhand.toml").write_text(text, encoding="utf-8")
    return load_suite(folder / "evenhand.toml", environment, overrides)


def test_a_suite_is_read_and_what_it_does_not_say_has_its_default(tmp_path):
    file = load(tmp_path).file
    assert (file.name, file.protocol, file.data[0].file) == ("mine", "rubric", "samples.jsonl")
    assert [judge.repeats for judge in file.judges] == [1, 2]
    assert file.limits.budget_usd == Decimal("5.00")
    assert (file.language, file.seed, file.rubric, file.use) == ("en", 0, None, [])
    assert (file.settings.repairs, file.settings.expose_meta) == (limits.REPAIRS, False)
    assert file.store.url == "sqlite:evenhand.db"


def test_the_command_line_beats_the_environment_beats_the_file_beats_the_default(tmp_path):
    bare = SUITE.replace("concurrency = 8\n", "")
    wins = {"EVENHAND_LIMITS__CONCURRENCY": "9"}
    over = {"limits": {"concurrency": 10}, "judges": [{"model": "replay/x"}]}
    found = [
        load(tmp_path, bare),
        load(tmp_path),
        load(tmp_path, **wins),
        load(tmp_path, bare, **wins),
        load(tmp_path, SUITE, over, **wins),
    ]
    expected = [limits.CONCURRENCY, 8, 9, 9, 10]
    assert [suite.file.limits.concurrency for suite in found] == expected
    assert {suite.file.limits.budget_usd for suite in found} == {Decimal("5.00")}
    assert [judge.model for judge in found[-1].file.judges] == ["replay/x"]


@cases
def test_any_key_can_come_from_the_environment(tmp_path, variable, value):
    file = load(tmp_path, **{variable: value}).file
    settings = str(file.settings.expose_meta).lower()
    assert value in (file.name, file.data[0].file, file.store.url, settings)


def test_variables_that_are_no_key_of_a_suite_are_left_alone(tmp_path):
    found = load(
        tmp_path,
        EVENHAND_HOME="x",
        EVENHAND_MODELS="m",
        EVENHAND_EMBEDDED_THREADS="2",
        EVENHAND_LIMIT="3",
        EVENHAND_OTHER__TOOL="4",
        NAME="y",
        evenhand_name="z",
        HOME="/root",
    )
    assert found.file.name == "mine"


def test_a_folder_stands_for_the_file_in_it_and_paths_are_relative_to_it(tmp_path):
    load(tmp_path)
    suite = load_suite(tmp_path, {})
    assert suite.path == tmp_path / "evenhand.toml"
    assert suite.locate("data", "a.jsonl") == (tmp_path / "a.jsonl", tmp_path)


def test_one_data_file_may_stand_without_a_list_and_a_byte_order_mark_is_no_harm(tmp_path):
    text = "\ufeff" + SUITE.replace('["samples.jsonl"]', '"samples.jsonl"')
    assert [spec.file for spec in load(tmp_path, text).file.data] == ["samples.jsonl"]


@cases
def test_what_is_wrong_is_told_with_file_and_line(tmp_path, old, new, key, says, line):
    """A suite in which something was replaced."""
    room = "kinds" if "toml" in key else "suite"
    with refused(UsageError, f"{room}.{key}", says) as caught:
        load(tmp_path, SUITE.replace(old, new))
    path = tmp_path / "evenhand.toml"
    assert caught.value.where == (f"{path}:{line}" if line else str(path))


def test_a_suite_that_nests_too_deep_is_told(tmp_path):
    with refused(UsageError, "kinds.toml_depth", "64"):
        load(tmp_path, "deep = " + "[" * 10**4)


@cases
def test_what_is_wrong_in_the_environment_is_not_blamed_on_the_file(
    tmp_path, variable, value, key, says
):
    with refused(UsageError, f"suite.{key}", says) as caught:
        load(tmp_path, **{f"EVENHAND_{variable}": value})
    assert caught.value.where == f"EVENHAND_{variable}"


def test_what_is_wrong_on_the_command_line_is_not_blamed_on_the_file(tmp_path):
    with refused(UsageError, "suite.int_parsing", "^EVENHAND_SEED: .*seed"):
        load(tmp_path, SUITE, {"judges": [{"model": ""}]}, EVENHAND_SEED="x")
    with refused(UsageError, "suite.string_too_short", "judges.0.model") as caught:
        load(tmp_path, SUITE, {"judges": [{"model": ""}]})
    assert caught.value.where.key == "suite.command_line"


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path):
    with refused(UsageError, "suite.no_suite") as caught:
        load_suite(tmp_path, {})
    assert "evenhand init" in str(caught.value)
    (tmp_path / "evenhand.toml").write_bytes(b"\xff\xfe")
    with refused(UsageError, "files.unreadable"):
        load_suite(tmp_path, {})


RUBRIC = """\
[[dimensions]]
id = "a"
  [[dimensions.bands]]
  score = 1
  [[dimensions.bands]]
  score = 2

[[ dimensions ]]  # the second
id = "b"
[[dimensions.bands]]
"score" = 1
[x.'y.z']
k.l . m = 1
"""


@cases
def test_a_key_of_a_toml_text_has_its_line(loc, line):
    assert find_line(RUBRIC, tuple(loc)) == line


def test_the_schema_describes_every_key_of_the_file():
    schema = suite_schema()
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert {"name", "protocol", "data", "judges", "limits", "store"} <= set(schema["properties"])
    assert schema["additionalProperties"] is False
