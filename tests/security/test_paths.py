"""A suite, a data file or a protocol folder from a stranger names files: none outside of its folder
is read, sent or stored, unless the user says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import main
from tests.suites import (
    RUBRIC,
    TASK,
    answers,
    evenhand,
    pairs,
    samples,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)

Told = subprocess.CompletedProcess[str]
Call = Callable[..., Told]
SECRET = "a secret of the user's own"
GOOD = {"model": "python/judge:good"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite's folder beside which lies what it must not have."""
    outside = tmp_path / "home"
    outside.mkdir()
    (outside / "secret.md").write_text(f"{TASK}\n- {SECRET}\n")
    (outside / "rubric.json").write_text(json.dumps(RUBRIC))
    write_rows(outside, samples(2))
    (tmp_path / "suite").mkdir()
    return tmp_path / "suite"


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls a command in this process, from a folder."""

    def called(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> Told:
        capsys.readouterr()
        with monkeypatch.context() as patched:
            patched.chdir(cwd)
            patched.setattr(sys, "argv", ["evenhand", *arguments])
            for name, value in (env or {}).items():
                patched.setenv(name, value)
            with pytest.raises(SystemExit) as left:
                main()
        out, err = capsys.readouterr()
        return Told([], int(left.value.code or 0), out, err)

    return called


def _linked(folder: Path, name: str) -> str:
    link = folder / f"link{Path(name).suffix}"
    link.symlink_to(folder.parent / "home" / name)
    return link.name


WAYS: dict[str, Callable[[Path, str], str]] = {
    "absolute": lambda folder, name: str(folder.parent / "home" / name),
    "above": lambda folder, name: f"../home/{name}",
    "detour": lambda folder, name: f"x/../../home/{name}",
    "link": _linked,
    "linked folder": lambda folder, name: f"{_linked(folder, '')}/{name}",
}


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("evenhand.db*"))


@pytest.mark.parametrize("way", WAYS)
def test_a_row_reads_no_rubric_outside(call: Call, folder: Path, way: str) -> None:
    (folder / "x").mkdir()
    rows = [row | {"rubric": WAYS[way](folder, "secret.md")} for row in answers(1)]
    write_answers(folder, rows)
    for flags in ((), ("--allow-outside",), ("--dry-run",)):
        told = call("run", *flags, cwd=folder)
        assert told.returncode == 3, told.stderr
        assert "leads out of" in told.stderr and "answers.jsonl:1" in told.stderr
        assert SECRET not in told.stdout + told.stderr
    assert SECRET.encode() not in stored(folder)


def test_a_row_may_name_a_rubric_in_the_suites_folder(call: Call, folder: Path) -> None:
    (folder / "rubrics").mkdir()
    (folder / "rubrics" / "t.md").write_text(TASK)
    (folder / "data").mkdir()
    (folder / "data" / "own.md").write_text(TASK)
    named = ("own.md", "../rubrics/t.md", str(folder / "rubrics" / "t.md"))
    rows = [row | {"rubric": name} for row, name in zip(answers(3), named, strict=True)]
    write_answers(folder, rows, data=["data/answers.jsonl"])
    (folder / "answers.jsonl").rename(folder / "data" / "answers.jsonl")
    told = call("run", "--json", cwd=folder)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["verdicts"] == 3


def test_check_reads_no_rubric_outside_of_the_units_folder(call: Call, folder: Path) -> None:
    rows = [row | {"rubric": "../home/secret.md"} for row in answers(1)]
    write_rows(folder, rows, "units.jsonl")
    write_rows(folder, [{"unit": "t0/m", "reply": "{}"}], "replies.jsonl")
    flags = ("--protocol", "weighted", "--units", "units.jsonl", "--replies", "replies.jsonl")
    told = call("check", *flags, cwd=folder)
    assert told.returncode == 3 and "leads out of" in told.stderr
    assert SECRET not in told.stdout + told.stderr


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", ["data", "rubric", "prompt", "protocol", "judges", "store"])
def test_a_suite_names_nothing_outside_unless_that_is_allowed(
    call: Call, folder: Path, way: str, key: str
) -> None:
    home = folder.parent / "home"
    call("protocols", "new", "mine", "--from", "rubric", cwd=home)
    (home / "prompt.md").write_text("Judge.\n\n{{question}} {{model_output}} {{rubric}}\n")
    replies = [{"unit": f"u{i}", "reply": "{}"} for i in range(2)]
    write_rows(home, replies, "replies.jsonl")
    (folder / "x").mkdir()
    name = WAYS[way](folder, OUTSIDE[key])
    value: Any = {"data": [name], "store": {"url": f"sqlite:{name}"}}.get(key, name)
    judges = [{"model": f"replay/{name}"}] if key == "judges" else [GOOD]
    rest = {} if key == "judges" else {key: value}
    write_suite(folder, 2, *judges, **rest)
    told = call("run", cwd=folder)
    assert told.returncode == 2, told.stderr
    assert "leads out of the suite's folder" in told.stderr and "evenhand.toml" in told.stderr
    assert "--allow-outside" in told.stderr or key == "store"
    assert not list(folder.glob("evenhand.db*")) and not (home / "other.db").exists()
    allowed = call("run", "--allow-outside", cwd=folder)
    assert allowed.returncode not in (2, 3), allowed.stderr


OUTSIDE = {
    "data": "samples.jsonl",
    "rubric": "rubric.json",
    "prompt": "prompt.md",
    "protocol": "mine",
    "judges": "replies.jsonl",
    "store": "other.db",
}


def test_what_the_command_line_names_is_the_users_own(call: Call, folder: Path) -> None:
    write_rows(folder.parent / "home", [{"unit": "u0", "reply": "{}"}], "replies.jsonl")
    write_suite(folder, 1, store={"url": "sqlite:../home/other.db"})
    flags = ("--store", "sqlite:../home/mine.db", "--judge", "replay/../home/replies.jsonl")
    told = call("run", *flags, cwd=folder)
    assert told.returncode in (0, 1), told.stderr
    assert (folder.parent / "home" / "mine.db").exists()
    env = {"EVENHAND_STORE__URL": "sqlite:../home/mine.db"}
    assert call("runs", cwd=folder, env=env).returncode == 0


def test_readers_open_no_store_outside_because_a_suite_says_so(call: Call, folder: Path) -> None:
    write_suite(folder.parent / "home", 1, store={"url": "sqlite:other.db"})
    assert call("run", cwd=folder.parent / "home").returncode == 0
    write_suite(folder, 1, store={"url": "sqlite:../home/other.db"})
    for command in (("runs",), ("show",), ("export", "latest", "-o", "x.jsonl")):
        told = call(*command, cwd=folder)
        assert told.returncode == 2 and "leads out of" in told.stderr
    assert call("runs", "--store", "sqlite:../home/other.db", cwd=folder).returncode == 0


def test_dotenv_names_no_store(call: Call, folder: Path) -> None:
    """`.env` lies in the folder, so whoever made the suite may have written it."""
    write_suite(folder, 1)
    (folder / ".env").write_text("EVENHAND_STORE__URL=sqlite:../home/other.db\n")
    for command in ("run", "runs", "show"):
        told = call(command, cwd=folder)
        assert told.returncode == 2 and "EVENHAND_STORE__URL is not read from here" in told.stderr
    assert not (folder.parent / "home" / "other.db").exists()


def test_a_protocol_folder_links_to_nothing_outside(call: Call, folder: Path) -> None:
    call("protocols", "new", "mine", "--from", "rubric", cwd=folder)
    (folder.parent / "home" / "en.md").write_text(SECRET)
    prompt = folder / "mine" / "prompts" / "en.md"
    prompt.unlink()
    prompt.symlink_to(folder.parent / "home" / "en.md")
    write_suite(folder, 1, protocol="mine")
    for command in (("run",), ("run", "--allow-outside"), ("protocols", "show", "mine")):
        told = call(*command, cwd=folder)
        assert told.returncode == 2 and "leads out of" in told.stderr, told.stderr
        assert SECRET not in told.stdout + told.stderr


def test_a_protocol_folder_without_end_is_refused(call: Call, folder: Path) -> None:
    call("protocols", "new", "mine", "--from", "rubric", cwd=folder)
    (folder / "mine" / "again").symlink_to(folder / "mine")
    write_suite(folder, 1, protocol="mine")
    told = call("run", cwd=folder)
    assert told.returncode == 2 and "folders in folders" in told.stderr, told.stderr


@pytest.mark.parametrize("key", ["data", "rubric", "prompt", "judges", "suite", "row", ".env"])
def test_what_is_no_plain_file_is_not_opened(folder: Path, key: str) -> None:
    """A pipe that nobody writes to would be waited for without end."""
    write_suite(folder, 1)
    pipe = folder / {"suite": "evenhand.toml", "row": "task.md", ".env": ".env"}.get(key, "pipe.md")
    name, judges, rest = pipe.name, [GOOD], {}
    if key == "data":
        pipe, rest = folder / "pipe.jsonl", {"data": ["pipe.jsonl"]}
    elif key == "rubric":
        pipe, rest = folder / "pipe.json", {"rubric": "pipe.json"}
    elif key == "judges":
        judges = [{"model": f"replay/{name}"}]
    elif key == "prompt":
        rest = {"prompt": name}
    write_suite(folder, 1, *judges, **rest)
    if key == "row":
        write_answers(folder, [row | {"rubric": name} for row in answers(1)])
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    told = evenhand("run", cwd=folder)
    assert told.returncode in (2, 3), told.stderr
    assert "no plain file" in told.stderr, told.stderr


@pytest.mark.parametrize("key", ["rubric", "prompt", "suite", "protocol"])
def test_texts_larger_than_any_text_are_refused(call: Call, folder: Path, key: str) -> None:
    call("protocols", "new", "mine", "--from", "rubric", cwd=folder)
    rest = {"rubric": "huge.json", "prompt": "huge.md", "protocol": "mine"}
    write_suite(folder, 1, **({key: rest[key]} if key in rest else {}))
    path = folder / {"suite": "evenhand.toml", "protocol": "mine/protocol.toml"}.get(
        key, rest.get(key, "")
    )
    with path.open("ab") as file:
        file.truncate(64 * 1024 * 1024)
    told = call("run", cwd=folder)
    assert told.returncode == 2 and "MB" in told.stderr, told.stderr


def test_pairs_in_a_folder_of_their_own_run_as_before(call: Call, folder: Path) -> None:
    (folder / "data").mkdir()
    write_rows(folder / "data", pairs(2), "pairs.jsonl")
    write_pairs(folder, 2, data=["data/pairs.jsonl"])
    assert (
        call(
            "run",
            cwd=folder.parent,
        ).returncode
        == 2
    )
    assert call("run", "suite", cwd=folder.parent).returncode == 0


def test_code_is_run_by_run_alone(call: Call, folder: Path) -> None:
    """Looking at a suite, or at what it left in the store, imports nothing of it."""
    write_suite(folder, 2)
    assert call("run", cwd=folder).returncode == 0
    ran = folder.parent / "ran"
    write_suite(folder, 2, {"model": "python/trap:good"})
    (folder / "trap").mkdir()
    trap = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\nfrom judge import good\n"
    (folder / "trap" / "__init__.py").write_text(trap)
    write_rows(folder, [{"unit": "u0", "reply": "{}"}], "replies.jsonl")
    looks = (
        ("run", "--dry-run"),
        ("doctor",),
        ("check", "--units", "samples.jsonl", "--replies", "replies.jsonl"),
        ("runs",),
        ("show",),
        ("export", "latest", "-o", "x.jsonl"),
        ("settle", "latest"),
    )
    for command in looks:
        told = call(*command, cwd=folder)
        assert not ran.exists(), command
        assert ("was not run" in told.stderr) == ("--dry-run" in command)
    assert call("run", cwd=folder).returncode == 0
    assert ran.exists()
