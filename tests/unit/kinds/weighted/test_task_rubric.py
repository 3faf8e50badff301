"""What is read from a task rubric, and where one is refused."""

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.kinds.kind import RubricTextError
from evenhand.kinds.weighted.task_rubric import describe_task, labels, read_task
from tests.cases import cases
from tests.sentences import refused

FOLDER = Path(__file__).parent / "tasks"
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
DOCS = Path(__file__).parents[4] / "docs" / "weighted-rubrics.md"


def read(name):
    return read_task((FOLDER / name).read_bytes().decode())


def seen(rubric):
    """`describe_task` in the short form of the table."""
    shown = describe_task(rubric)
    return shown | {"conditions": [list(one.values()) for one in shown["conditions"]]}


def test_the_table_is_of_the_files():
    files = {path.name for path in FOLDER.iterdir()} - {"expected.json"}
    assert files == set(EXPECTED)


@cases
def test_what_is_read(name):
    rubric = read(name)
    assert seen(rubric) == EXPECTED[name]
    assert rubric.text == (FOLDER / name).read_bytes().decode()


@cases
def test_what_is_refused_and_where(name):
    with refused(RubricTextError, EXPECTED[name]["key"]) as caught:
        read(name)
    assert caught.value.line == EXPECTED[name]["line"]


@pytest.mark.parametrize(
    ("section", "label"),
    [
        (section, label)
        for section in ("critical", "facts", "type")
        for words in labels()[section].values()
        for label in words
    ],
)
def test_every_label_opens_its_section(section, label):
    heading = f"{label.title()}: fact" if section == "type" else f"{label.title()}\n\nfact"
    rubric = read_task(f"# A\n\n## {heading}\n\n# B\n")
    read = {"type": rubric.task_type, "critical": "".join(rubric.critical), "facts": rubric.facts}
    assert read[section] == "fact"
    assert rubric.points.split() == ["#", "A", "#", "B"]


@pytest.mark.parametrize(
    ("name", "word"), [(name, word) for name, words in labels()["values"].items() for word in words]
)
def test_every_word_for_a_type_is_known(name, word):
    assert read_task(f"task_type: {word}").task_type == name


def test_the_docs_list_every_label_and_word():
    listed = {
        part.strip().strip("|*") for part in DOCS.read_text("utf-8").replace("|", ",").split(",")
    }
    listed = {" ".join(part.split()) for part in listed}
    for table in ("critical", "facts", "type", "values"):
        for words in labels()[table].values():
            assert set(words) <= listed


def test_a_protocol_with_types_of_its_own():
    types = ("code", "Перевод", "fact")
    assert read_task("task_type: Code", types).task_type == "code"
    assert read_task("Тип задачи: перевод", types).task_type == "Перевод"
    assert read_task("Тип задачи: факт", types).task_type == "fact"
    with refused(RubricTextError, "kinds.unknown_type", "code, Перевод, fact"):
        read_task("task_type: creative", types)
    with refused(RubricTextError, "kinds.misspelt_type", '"code"'):
        read_task("task_type: coed", types)


def test_a_text_that_cannot_be_sent_is_refused_with_its_line():
    with refused(RubricTextError, "kinds.no_unicode") as caught:
        read_task("# a\n# \ud800\n")
    assert caught.value.line == 2
    with refused(RubricTextError, "kinds.long_rubric"):
        read_task("#" * 200_001)


def test_more_conditions_than_an_answer_can_be_held_to():
    items = "".join(f"- must_match: /{n}/\n" for n in range(101))
    with refused(RubricTextError, "kinds.many_conditions", "100") as caught:
        read_task(f"## Critical Fail Conditions\n{items}")
    assert caught.value.line == 102


def test_the_same_text_is_the_same_rubric():
    assert read_task("task_type: fact") is read_task("task_type: fact")
    assert asdict(read_task("task_type: fact"))["task_type"] == "fact"


BITS = [
    *(
        "# ",
        "## ",
        "###",
        "**",
        "__",
        "- ",
        "1. ",
        "・",
        "  ",
        "\t",
        "```",
        "~~~",
        "---",
        "===",
        "|",
    ),
    *(
        ": ",
        "：",
        "=",
        "`",
        "> ",
        "<!--",
        "-->",
        "/",
        "(",
        ")",
        "\\",
        "[",
        "+",
        "*",
        "+++",
        "\ufeff",
    ),
    *("Critical Fail Conditions", "失格条件", "一票否决", "Критические ошибки", "none", "なし"),
    *("Facts for the grader", "採点者向け事実情報", "task_type", "任务类型", "fact", "creative"),
    *(
        "must_match",
        "must_not_match",
        "max_chars",
        "min_chars",
        "must_x",
        "12",
        "word",
        "ё",
        "\x0b",
    ),
]
MARKDOWN = st.lists(
    st.one_of(st.sampled_from(BITS), st.sampled_from(["\n", "\n\n", "\r\n"]), st.text(max_size=3)),
    max_size=40,
).map("".join)


@given(MARKDOWN)
@settings(max_examples=400, deadline=None)
def test_reading_is_total_and_keeps_every_text_as_it_stands(text):
    try:
        rubric = read_task(text)
    except RubricTextError as error:
        last = len(read_lines_of(text)) or 1
        assert 1 <= error.line <= last
        assert str(error)
        return
    assert rubric.text == text
    for kept in (*rubric.critical, rubric.facts or "", rubric.points):
        for line in kept.split("\n"):
            assert line in text


def read_lines_of(text):
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


@given(
    st.lists(st.text("абв xyz漢字。,", min_size=1, max_size=20).map(str.strip).filter(bool)),
    st.sampled_from(["fact", "creative", "speculative"]),
)
@settings(deadline=None)
def test_items_come_back_in_order(items, task_type):
    listed = "".join(f"- item {item}\n" for item in items) or "none\n"
    rubric = read_task(f"# T\ntask_type: {task_type}\n## 失格条件\n{listed}## Points\nx\n")
    assert rubric.critical == tuple(f"item {item}" for item in items)
    assert (rubric.task_type, rubric.points) == (task_type, "# T\n\n## Points\nx")


@pytest.mark.parametrize("mark", ["- ", "> ", "1. ", "[", "**", "(", "- > "])
def test_a_rubric_that_nests_deep_is_read_in_linear_time(mark):
    """Each would take minutes, or the stack, if every mark opened a level of its own."""
    text = f"## Critical Fail Conditions\n{mark * (60_000 // len(mark))}x"
    with suppress(RubricTextError):
        read_task(text)
