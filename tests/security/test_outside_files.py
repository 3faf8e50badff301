"""A table of attempts to have a file outside of the suite's folder sent, stored or shown: by every
key that names a file, by rows, globs, links, devices and folders of the system."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.suites import (
    RUBRIC,
    TASK,
    answers,
    evenhand_here,
    samples,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)

SECRET = "BEGIN-PRIVATE-KEY-of-the-user"
KEEPER = """
import pathlib
SENT = pathlib.Path(__file__).with_name("sent.txt")
async def good(messages, schema, params):
    with SENT.open("a") as file:
        file.write("\\n".join(message["content"] for message in messages))
    return "{}"
"""


class Attempt:
    """A suite's folder beside the user's home, in which every file holds the secret."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "home", root / "suite"
        self.home.mkdir()
        self.folder.mkdir()
        rubric = json.loads(json.dumps(RUBRIC))
        rubric["dimensions"][0]["definition"] = SECRET
        (self.home / "rubric.json").write_text(json.dumps(rubric))
        (self.home / "id_rsa").write_text(SECRET)
        (self.home / "task.md").write_text(f"{TASK}\n- {SECRET}\n")
        (self.home / "prompt.md").write_text(f"{SECRET} {{{{question}}}}")
        write_rows(self.home, [row | {"question": SECRET} for row in samples(2)])
        write_rows(self.home, [{"unit": "u0", "reply": SECRET}], "replies.jsonl")
        made = evenhand_here("protocols", "new", "mine", "--from", "rubric", cwd=self.home)
        assert made.returncode == 0, made.stderr
        prompt = self.home / "mine" / "prompts" / "en.md"
        prompt.write_text(prompt.read_text().replace("<!-- user -->", f"<!-- user -->\n{SECRET}"))

    def suite(self, **keys: Any) -> None:
        write_suite(self.folder, 1, judge=KEEPER, **keys)

    def answers(self, rubric: str, **keys: Any) -> None:
        rows = [row | {"rubric": rubric} for row in answers(1)]
        write_answers(self.folder, rows, judge=KEEPER, **keys)

    def link(self, name: str, target: Path | str) -> None:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).symlink_to(target)

    def copied(self) -> Path:
        made = evenhand_here("protocols", "new", "mine", "--from", "rubric", cwd=self.folder)
        assert made.returncode == 0, made.stderr
        return self.folder / "mine"


def _link_in_protocol(attempt: Attempt, name: str, target: str) -> None:
    file = attempt.copied() / name
    file.unlink(missing_ok=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.symlink_to(attempt.home / target)
    attempt.suite(protocol="mine")


def _linked_prompts(attempt: Attempt) -> None:
    folder = attempt.copied()
    for file in (folder / "prompts").rglob("*"):
        if file.is_file():
            file.unlink()
    (folder / "prompts").rename(folder / "old")
    (folder / "prompts").symlink_to(attempt.home / "mine" / "prompts")
    attempt.suite(protocol="mine")


def _chain(attempt: Attempt) -> None:
    attempt.link("a.json", "b.json")
    attempt.link("b.json", "../home/rubric.json")
    attempt.suite(rubric="a.json")


def _pair_prompt(attempt: Attempt) -> None:
    write_pairs(attempt.folder, 1, judge=KEEPER, prompt="../home/prompt.md")


def _table(attempt: Attempt) -> None:
    attempt.answers("inline", data=["rows.csv"])
    line = f't0,What?,"It is so.",{attempt.home / "task.md"}\n'
    (attempt.folder / "rows.csv").write_text("task_name,prompt,answer,rubric\n" + line)


def _columns(attempt: Attempt) -> None:
    attempt.answers("inline", data=["rows.csv"], columns={"rubric": "which"})
    line = f't0,What?,"It is so.",{attempt.home / "task.md"}\n'
    (attempt.folder / "rows.csv").write_text("task_name,prompt,answer,which\n" + line)


def _constant(attempt: Attempt) -> None:
    (attempt.folder / "rows.csv").write_text('task_name,prompt,answer\nt0,What?,"It is so."\n')
    attempt.answers("inline", data=[{"file": "rows.csv", "rubric": str(attempt.home / "task.md")}])


def _linked_data_folder(attempt: Attempt) -> None:
    """Rows beside whose own file a rubric lies, which is a link."""
    attempt.link("data/task.md", attempt.home / "task.md")
    attempt.answers("task.md", data=["data/answers.jsonl"])
    (attempt.folder / "answers.jsonl").rename(attempt.folder / "data" / "answers.jsonl")


def _linked_suite_file(attempt: Attempt) -> None:
    """The suite's file is a link into the home: its folder is where the link lies."""
    attempt.suite(rubric="rubric.json")
    (attempt.folder / "evenhand.toml").rename(attempt.folder.parent / "evenhand.toml")
    (attempt.folder / "rubric.json").unlink()
    attempt.link("evenhand.toml", "../evenhand.toml")
    attempt.link("rubric.json", "../home/rubric.json")


def _proc(attempt: Attempt, name: str) -> str:
    return f"/proc/self/root{attempt.home / name}"


def _by_link(link: str, target: str, **keys: Any) -> Callable[[Attempt], None]:
    """A suite with these keys, and in its folder a link to something of the home."""

    def make(attempt: Attempt) -> None:
        attempt.link(link, target if target.startswith("/") else attempt.home / target)
        attempt.suite(
            **{
                key: [name.format(home=attempt.home) for name in value]
                if isinstance(value, list)
                else value.format(home=attempt.home)
                for key, value in keys.items()
            }
        )

    return make


def _row_by_link(attempt: Attempt) -> None:
    attempt.link("t.md", attempt.home / "task.md")
    attempt.answers("t.md")


def _replies(attempt: Attempt) -> None:
    write_suite(attempt.folder, 1, {"model": "replay/../home/replies.jsonl"})


def _replies_by_link(attempt: Attempt) -> None:
    attempt.link("r.jsonl", attempt.home / "replies.jsonl")
    write_suite(attempt.folder, 1, {"model": "replay/r.jsonl"})


def _data_in_table(attempt: Attempt) -> None:
    attempt.suite(data=[{"file": "../home/samples.jsonl", "prompt_variant": "v"}])


ATTEMPTS: dict[str, Callable[[Attempt], None]] = {
    "rubric absolute": lambda a: a.suite(rubric=str(a.home / "rubric.json")),
    "rubric above": lambda a: a.suite(rubric="../home/rubric.json"),
    "rubric through proc": lambda a: a.suite(rubric=_proc(a, "rubric.json")),
    "rubric through cwd": lambda a: a.suite(rubric="/proc/self/cwd/../home/rubric.json"),
    "rubric by a link": _by_link("r.json", "rubric.json", rubric="r.json"),
    "rubric by a chain of links": _chain,
    "rubric by a linked folder": _by_link("x", "", rubric="x/rubric.json"),
    "rubric by a link to the root": _by_link("x", "/", rubric="x{home}/rubric.json"),
    "rubric by a link to proc": _by_link("x", "/proc/self/cwd", rubric="x/../home/rubric.json"),
    "rubric with dots": lambda a: a.suite(rubric="./././../suite/../home/./rubric.json"),
    "rubric of another case": lambda a: a.suite(rubric="../HOME/rubric.json"),
    "rubric of the home sign": lambda a: a.suite(rubric="~/rubric.json"),
    "rubric with a scheme": lambda a: a.suite(rubric=f"file://{a.home}/rubric.json"),
    "prompt absolute": lambda a: a.suite(prompt=str(a.home / "id_rsa")),
    "prompt above": lambda a: a.suite(prompt="../home/prompt.md"),
    "prompt by a link": _by_link("p.md", "id_rsa", prompt="p.md"),
    "prompt of pairs": _pair_prompt,
    "data absolute": lambda a: a.suite(data=[str(a.home / "samples.jsonl")]),
    "data above": lambda a: a.suite(data=["../home/samples.jsonl"]),
    "data by a pattern": lambda a: a.suite(data=["../home/*.jsonl"]),
    "data by an absolute pattern": lambda a: a.suite(data=[f"{a.home}/sam*.jsonl"]),
    "data by a pattern of folders": lambda a: a.suite(data=["../*/samples.jsonl"]),
    "data by a deep pattern": _by_link("x", "", data=["**/samples.jsonl"]),
    "data by a linked pattern": _by_link("x", "", data=["x/*.jsonl"]),
    "data by a set": lambda a: a.suite(data=["[.][.]/home/samples.jsonl"]),
    "data in a table": _data_in_table,
    "data by a link": _by_link("d.jsonl", "samples.jsonl", data=["d.jsonl"]),
    "data through proc": lambda a: a.suite(data=[_proc(a, "samples.jsonl")]),
    "protocol absolute": lambda a: a.suite(protocol=str(a.home / "mine")),
    "protocol above": lambda a: a.suite(protocol="../home/mine"),
    "protocol by a link": _by_link("mine", "mine", protocol="mine"),
    "prompt linked in a protocol": lambda a: _link_in_protocol(a, "prompts/en.md", "id_rsa"),
    "prompts linked in a protocol": _linked_prompts,
    "words linked in a protocol": lambda a: _link_in_protocol(a, "words/en.toml", "id_rsa"),
    "settings linked in a protocol": lambda a: _link_in_protocol(
        a, "protocol.toml", "mine/protocol.toml"
    ),
    "row absolute": lambda a: a.answers(str(a.home / "task.md")),
    "row above": lambda a: a.answers("../home/task.md"),
    "row by a link": _row_by_link,
    "row through proc": lambda a: a.answers(_proc(a, "task.md")),
    "row of a table": _table,
    "row by a mapped column": _columns,
    "row by a constant": _constant,
    "row beside linked data": _linked_data_folder,
    "recorded replies": _replies,
    "recorded replies by a link": _replies_by_link,
    "linked suite file": _linked_suite_file,
}
COMMANDS = (("run", "--dry-run"), ("run",), ("doctor",), ("show",), ("report", "-o", "r.html"))


@pytest.mark.parametrize("name", ATTEMPTS)
def test_nothing_of_an_outside_file_is_sent_stored_or_shown(tmp_path: Path, name: str) -> None:
    attempt = Attempt(tmp_path)
    ATTEMPTS[name](attempt)
    shown = ""
    for command in COMMANDS:
        result = evenhand_here(*command, cwd=attempt.folder)
        assert result.returncode != 70, result.stderr
        shown += result.stdout + result.stderr
    assert SECRET not in shown
    for path in attempt.folder.rglob("*"):
        is_inside = path.resolve().is_relative_to(attempt.folder)
        if path.is_file() and is_inside:
            assert SECRET.encode() not in path.read_bytes(), path


def test_the_keeper_would_have_told(tmp_path: Path) -> None:
    """The same texts, allowed by the user, do arrive: the table above can fail."""
    attempt = Attempt(tmp_path)
    attempt.suite(rubric="../home/rubric.json")
    assert evenhand_here("run", "--allow-outside", cwd=attempt.folder).returncode in (0, 1)
    assert SECRET in (attempt.folder / "sent.txt").read_text()
