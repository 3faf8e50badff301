"""Nothing that comes from data, files, replies or names steers a terminal, through any door. Every
command is called on a suite in which all that can be named is hostile."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata

import pytest

from evenhand.api import notify
from evenhand.errors import UsageError
from tests import provider as p
from tests.suites import (
    GOOD,
    RUBRIC,
    at,
    evenhand_here,
    pairs,
    write_pairs,
    write_rows,
    write_suite,
)

TAGS = "plain\U000e0041\U000e0042"
ALL = " ".join(
    [
        "\x1b[2J\x1b[H",  # clears
        "\x1b[8mhidden\x1b[0m",
        "\x1b]0;owned\x07",  # a title
        "\x1b]8;;http://evil.test\x1b\\click\x1b]8;;\x1b\\",
        "\x9b31m\x9d0;owned\x9c",
        "good\x08\x08\x08\x08evil",
        "good\revil",
        "user\u202etxt.exe\u2066\u2069",
        "pass\u200bword\u2060\ufeff",
        TAGS,
        "a\x00b",
        "a\x7fb",
        "a\u2028b\u2029c\x85d",
    ]
)
FOR_TOML = ALL.replace(TAGS, "").replace("\x7f", "")
FOR_FILES = ALL.replace("\x00", "").replace("/", "")[:90]


DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "PDI")


def steered(text):
    """What of a text a terminal would obey or not show."""
    return [
        f"U+{ord(letter):04X}"
        for letter in text
        if letter not in "\n\t"
        and (
            unicodedata.category(letter) in ("Cc", "Zl", "Zp", "Co")
            or unicodedata.bidirectional(letter) in DIRECTIONS
            or letter in "\u200b\u2060\ufeff"
            or 0xE0000 <= ord(letter) < 0xE0080
        )
    ]


def checked(result):
    assert steered(result.stdout) == [], result.stdout
    assert steered(result.stderr) == [], result.stderr
    assert result.returncode != 70, result.stderr
    return result


def hostile_rows(text):
    return [
        {
            "id": f"u{number}{text}",
            "meta": {"model": f"m{number % 2}{text}", "prompt_variant": text, f"f{text}": text},
            "question": f"Q{text}?",
            "model_output": f"{text} and an answer that is long enough to be quoted {number}",
        }
        for number in range(4)
    ]


JUDGE = """
import json
import pathlib
TEXT = json.loads(pathlib.Path("nasty.json").read_text())
def reply(messages):
    part = {"evidence": [], "rationale": "no evidence found " + TEXT, "score": 3}
    scores = {"correct": part, "clear": part}
    return json.dumps({"scores": scores, "failure_tags": [], "notes": TEXT})
async def good(messages, schema, params):
    return reply(messages)
async def wild(messages, schema, params):
    return TEXT
async def crash(messages, schema, params):
    raise RuntimeError(TEXT)
"""


@pytest.fixture
def suite(tmp_path):
    rubric = json.loads(json.dumps(RUBRIC))
    rubric["dimensions"][0] |= {"name": f"N{ALL}", "definition": ALL}
    judges = [{"model": f"python/judge:{name}"} for name in ("good", "wild", "crash")]
    write_suite(tmp_path, hostile_rows(ALL), *judges, judge=JUDGE, name=f"suite{FOR_TOML}")
    (tmp_path / "rubric.json").write_text(json.dumps(rubric))
    (tmp_path / "nasty.json").write_text(json.dumps(ALL))
    return tmp_path


COMMANDS = """
run --dry-run / run --limit 2 / runs / runs --json / show / show --json / show latest u0
show latest nobody / export -o - / export --full -o - / export -o out.jsonl / compare --by model
compare --by f* / compare --by model --baseline * / compare --by model --json
compare --by model --worst 2 / agreement / gate --min-mean 0.1 --by model
report -o report.html / settle / leaderboard / doctor / doctor --json / store verify / protocols
protocols show * / models get * / models / check --rubric rubric.json / check --rubric *
check --units samples.jsonl --replies replies.jsonl --rubric rubric.json / show --where model=*
show --where *=x / runs --store sqlite:* / runs --store * / show * / run * / run --judge *
run --judge openai/* --dry-run / run --trust-host * / import * --kind votes
import samples.jsonl --kind * / * / run --* / run --limit * / init *
"""
"""In which a star is a hostile name."""


def test_no_command_lets_data_steer_the_terminal(suite):
    write_rows(
        suite,
        [{"unit": row["id"], "reply": ALL} for row in hostile_rows(ALL)],
        "replies.jsonl",
    )
    assert checked(evenhand_here("run", cwd=suite)).returncode == 0
    for command in re.split(r" / |\n", COMMANDS.strip()):
        words = [word.replace("*", FOR_FILES) for word in command.split()]
        checked(evenhand_here("", *words, cwd=suite))


def test_json_stays_equal(suite):
    checked(evenhand_here("run", cwd=suite))
    listed = checked(evenhand_here("runs --json", cwd=suite))
    assert [run["name"] for run in json.loads(listed.stdout)["runs"]] == [f"suite{FOR_TOML}"]
    rows = checked(evenhand_here("export -o -", cwd=suite)).stdout.splitlines()
    assert json.loads(rows[0])["meta"]["prompt_variant"] == ALL


def test_pairs_show_nothing_hidden(tmp_path):
    rows = [row | {"topic": f"T{ALL}", "pair_id": f"{row['pair_id']}{ALL}"} for row in pairs(3)]
    for row in rows:
        for candidate in row["candidates"]:
            candidate["id"] += ALL
            candidate["text"] += ALL
    write_pairs(tmp_path, rows, name=f"n{FOR_TOML}")
    for command in ("run", "show", "show latest p0", "leaderboard", "runs"):
        checked(evenhand_here(command, cwd=tmp_path))


FAULTS = {
    "toml": ("evenhand.toml", f"name = {json.dumps(ALL)}\nnonsense{ALL}"),
    "suite key": ("evenhand.toml", f'{json.dumps(FOR_FILES)} = 1\nname="x"'),
    "row": ("samples.jsonl", "{" + ALL),
    "row key": ("samples.jsonl", json.dumps({ALL: 1}) + "\n"),
    "duplicate key": ("samples.jsonl", f"{{{json.dumps(ALL)}: 1, {json.dumps(ALL)}: 2}}\n"),
    "rubric": ("rubric.json", "{" + ALL),
    "rubric key": ("rubric.json", json.dumps({ALL: 1})),
    "judge": ("judge.py", f"raise ValueError({ALL!r})"),
    "dotenv": (".env", f"EVENHAND_{ALL}=1\nOPENAI_API_KEY={ALL}\n"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_with_a_file_is_told_without_its_controls(tmp_path, name):
    write_suite(tmp_path, 2, GOOD)
    file, text = FAULTS[name]
    (tmp_path / file).write_text(text)
    for command in ("run", "doctor", "check --rubric rubric.json", "runs"):
        checked(evenhand_here(command, cwd=tmp_path))


def test_names_of_files_and_folders_steer_nothing(tmp_path):
    folder = tmp_path / f"suite\n{FOR_FILES}"
    write_suite(folder, 2)
    (folder / "samples.jsonl").rename(folder / f"{FOR_FILES}.jsonl")
    text = (folder / "evenhand.toml").read_text()
    (folder / "evenhand.toml").write_text(text.replace('"samples.jsonl"', '"*.jsonl"'))
    checked(evenhand_here("run", cwd=folder))
    (folder / f"{FOR_FILES}.jsonl").write_text("{}\nnonsense")
    result = checked(evenhand_here("run", str(folder), cwd=tmp_path))
    assert result.returncode == 3
    assert len(result.stderr.splitlines()) <= 2, "the name of a file began a line of its own"
    (folder / "evenhand.toml").write_text("name = 3")
    checked(evenhand_here("run", str(folder), cwd=tmp_path))
    checked(evenhand_here("doctor", cwd=folder))


def test_errors_of_providers_steer_nothing(tmp_path):
    async def run(status, headers):
        body = json.dumps({"error": {"message": ALL, "type": ALL, "code": ALL}}).encode()
        async with p.Provider(p.sending(body, status=status, headers=headers)) as provider:
            write_suite(tmp_path, 1, at(provider.url))
            work = asyncio.to_thread(evenhand_here, "run", cwd=tmp_path)
            return checked(await work)

    for status in (400, 401, 404, 413, 307):
        asyncio.run(run(status, {"Location": "http://evil.test/\x9b2J"} if status == 307 else {}))
    checked(evenhand_here("show", cwd=tmp_path))


def test_a_bug_is_told_without_controls(tmp_path, monkeypatch):
    import evenhand.cli.doctor as doctor

    def broken():
        raise RuntimeError(ALL)

    monkeypatch.setattr(doctor, "_findings", broken)
    result = evenhand_here("doctor", cwd=tmp_path)
    assert result.returncode == 70 and "RuntimeError" in result.stderr
    assert steered(result.stderr) == []


def test_messages_from_python_hold_no_controls(capsys):
    assert steered(str(UsageError(ALL, where=f"a\n{ALL}", advice=ALL))) == []
    assert str(UsageError("x", where="a\nb")) == "a\\nb: x"
    notify(ALL)
    assert steered(capsys.readouterr().err) == []


def test_colours_are_evenhands_own(suite, monkeypatch):
    """In a terminal with colours, the sequences are those of styles, and none comes from data."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    checked_run = evenhand_here("run", cwd=suite, env={"FORCE_COLOR": "1"})
    shown = evenhand_here("show latest u0", cwd=suite, env={"FORCE_COLOR": "1"})
    for text in (checked_run.stdout, shown.stdout):
        assert "\x1b[" in text
        assert steered(re.sub(r"\x1b\[[\d;]*m", "", text)) == []
        assert "\x1b[8m" not in text
