"""Attempts of a suite, a data file or a protocol folder from a stranger to have a file outside of
the suite's folder read, sent, stored or shown: by every key that names a file, by rows, globs,
links, devices and folders of the system. The user may allow it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.sentences import is_told
from tests.suites import (
    GOOD,
    RUBRIC,
    TASK,
    answers,
    samples,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.suites import evenhand_here as call

SECRET = "BEGIN-PRIVATE-KEY-of-the-user"
KEEPER = """
import pathlib
SENT = pathlib.Path(__file__).with_name("sent.txt")
async def good(messages, schema, params):
    with SENT.open("a") as file:
        file.write("\\n".join(message["content"] for message in messages))
    return "{}"
"""


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    """The user's home, in which every file holds the secret."""
    home = tmp_path_factory.mktemp("home")
    rubric = json.loads(json.dumps(RUBRIC))
    rubric["dimensions"][0]["definition"] = SECRET
    (home / "rubric.json").write_text(json.dumps(rubric))
    (home / "id_rsa").write_text(SECRET)
    (home / "task.md").write_text(f"{TASK}\n- {SECRET}\n")
    texts = "{{question}} {{model_output}} {{rubric}}"
    (home / "prompt.md").write_text(f"{SECRET}\n\n{texts}\n")
    write_rows(home, [row | {"question": SECRET} for row in samples(2)])
    replies = [{"unit": row["id"], "reply": SECRET} for row in samples(2)]
    write_rows(home, replies, "replies.jsonl")
    assert call("protocols new mine --from rubric", cwd=home).returncode == 0
    prompt = home / "mine" / "prompts" / "en.md"
    prompt.write_text(prompt.read_text().replace("<!-- user -->", f"<!-- user -->\n{SECRET}"))
    return home


class Attempt:
    """A suite's folder beside the user's home."""

    def __init__(self, root, secrets):
        self.home, self.folder = root / "home", root / "suite"
        shutil.copytree(secrets, self.home)
        self.folder.mkdir()

    def suite(self, **keys):
        write_suite(self.folder, 1, judge=KEEPER, **keys)

    def answers(self, rubric, **keys):
        rows = [row | {"rubric": rubric} for row in answers(1)]
        write_answers(self.folder, rows, judge=KEEPER, **keys)

    def link(self, name, target):
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).symlink_to(target)

    def by_link(self, link, target, **keys):
        self.link(link, target)
        self.link("b.json", "../home/rubric.json")
        self.suite(**keys)

    def copied(self):
        shutil.copytree(self.home / "mine", self.folder / "mine")
        prompt = self.folder / "mine" / "prompts" / "en.md"
        prompt.write_text(prompt.read_text().replace(SECRET, ""))
        return self.folder / "mine"

    def protocol(self, name, target):
        """A protocol folder in which something is a link into the home."""
        place = self.copied() / name
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        self.link(f"mine/{name}", self.home / target)
        self.suite(protocol="mine")


@pytest.fixture
def attempt(tmp_path, secrets):
    return Attempt(tmp_path, secrets)


@pytest.fixture
def folder(attempt):
    return attempt.folder


def _table(attempt, column="rubric", **keys):
    attempt.answers("inline", data=["rows.csv"], **keys)
    line = f't0,What?,"It is so.",{attempt.home / "task.md"}\n'
    (attempt.folder / "rows.csv").write_text(f"task_name,prompt,answer,{column}\n" + line)


def _constant(attempt):
    (attempt.folder / "rows.csv").write_text('task_name,prompt,answer\nt0,What?,"It is so."\n')
    attempt.answers("inline", data=[{"file": "rows.csv", "rubric": str(attempt.home / "task.md")}])


def _linked_data_folder(attempt):
    """Rows beside whose own file a rubric lies, which is a link."""
    attempt.link("data/task.md", attempt.home / "task.md")
    attempt.answers("task.md", data=["data/answers.jsonl"])
    (attempt.folder / "answers.jsonl").rename(attempt.folder / "data" / "answers.jsonl")


def _linked_suite_file(attempt):
    """The suite's file is a link into the home: its folder is where the link lies."""
    attempt.suite(rubric="rubric.json")
    (attempt.folder / "evenhand.toml").rename(attempt.folder.parent / "evenhand.toml")
    (attempt.folder / "rubric.json").unlink()
    attempt.link("evenhand.toml", "../evenhand.toml")
    attempt.link("rubric.json", "../home/rubric.json")


ATTEMPTS = {
    "rubric absolute": lambda a: a.suite(rubric=str(a.home / "rubric.json")),
    "rubric through proc": lambda a: a.suite(rubric=f"/proc/self/root{a.home}/rubric.json"),
    "rubric by a chain of links": lambda a: a.by_link("a.json", "b.json", rubric="a.json"),
    "rubric by a linked folder": lambda a: a.by_link("x", "../home", rubric="x/rubric.json"),
    "rubric by a link to the root": lambda a: a.by_link("x", "/", rubric=f"x{a.home}/rubric.json"),
    "rubric by a link to proc": lambda a: a.by_link(
        "x", "/proc/self/cwd", rubric="x/../home/rubric.json"
    ),
    "rubric of another case": lambda a: a.suite(rubric="../HOME/rubric.json"),
    "rubric of the home sign": lambda a: a.suite(rubric="~/rubric.json"),
    "rubric with a scheme": lambda a: a.suite(rubric=f"file://{a.home}/rubric.json"),
    "prompt absolute": lambda a: a.suite(prompt=str(a.home / "id_rsa")),
    "prompt of pairs": lambda a: write_pairs(a.folder, 1, judge=KEEPER, prompt="../home/prompt.md"),
    "data absolute": lambda a: a.suite(data=[str(a.home / "samples.jsonl")]),
    "data by a pattern": lambda a: a.suite(data=["../home/*.jsonl"]),
    "data by an absolute pattern": lambda a: a.suite(data=[f"{a.home}/sam*.jsonl"]),
    "data by a pattern of folders": lambda a: a.suite(data=["../*/samples.jsonl"]),
    "data by a deep pattern": lambda a: a.by_link("x", "../home", data=["**/samples.jsonl"]),
    "data by a linked pattern": lambda a: a.by_link("x", "../home", data=["x/*.jsonl"]),
    "data by a set": lambda a: a.suite(data=["[.][.]/home/samples.jsonl"]),
    "data in a table": lambda a: a.suite(
        data=[{"file": "../home/samples.jsonl", "prompt_variant": "v"}]
    ),
    "data through proc": lambda a: a.suite(data=[f"/proc/self/root{a.home}/samples.jsonl"]),
    "protocol absolute": lambda a: a.suite(protocol=str(a.home / "mine")),
    "prompts linked in a protocol": lambda a: a.protocol("prompts", "mine/prompts"),
    "words linked in a protocol": lambda a: a.protocol("words/en.toml", "id_rsa"),
    "settings linked in a protocol": lambda a: a.protocol("protocol.toml", "mine/protocol.toml"),
    "row absolute": lambda a: a.answers(str(a.home / "task.md")),
    "row through proc": lambda a: a.answers(f"/proc/self/root{a.home}/task.md"),
    "row of a table": _table,
    "row by a mapped column": lambda a: _table(a, "which", columns={"rubric": "which"}),
    "row by a constant": _constant,
    "row beside linked data": _linked_data_folder,
    "linked suite file": _linked_suite_file,
}


@pytest.mark.parametrize("name", ATTEMPTS)
def test_nothing_of_an_outside_file_is_sent_stored_or_shown(attempt, name):
    ATTEMPTS[name](attempt)
    shown = ""
    for command in ("run --dry-run", "run", "doctor", "show", "report -o r.html"):
        result = call(command, cwd=attempt.folder)
        assert result.returncode != 70, result.stderr
        assert result.returncode in (2, 3) or "run" not in command, result.stderr
        shown += result.stdout + result.stderr
    assert SECRET not in shown
    for path in attempt.folder.rglob("*"):
        is_inside = path.resolve().is_relative_to(attempt.folder)
        if path.is_file() and is_inside:
            assert SECRET.encode() not in path.read_bytes(), path


def test_the_keeper_would_have_told(attempt):
    """The same texts, allowed by the user, do arrive: the table above can fail."""
    attempt.suite(rubric="../home/rubric.json")
    assert call("run --allow-outside", cwd=attempt.folder).returncode in (0, 1)
    assert SECRET in (attempt.folder / "sent.txt").read_text()


def _linked(folder, name):
    link = folder / f"link{Path(name).suffix}"
    link.symlink_to(folder.parent / "home" / name)
    return link.name


WAYS = {
    "detour": lambda folder, name: f"x/../../home/{name}",
    "link": _linked,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_row_reads_no_rubric_outside(folder, way):
    (folder / "x").mkdir()
    rows = [row | {"rubric": WAYS[way](folder, "task.md")} for row in answers(1)]
    write_answers(folder, rows)
    for flags in ((), ("--allow-outside",), ("--dry-run",)):
        told = call("run", *flags, cwd=folder)
        assert told.returncode == 3, told.stderr
        assert is_told(told.stderr, "files.rubric_outside") and "answers.jsonl:1" in told.stderr
        assert SECRET not in told.stdout + told.stderr


def test_a_row_may_name_a_rubric_in_the_suites_folder(folder):
    (folder / "rubrics").mkdir()
    (folder / "rubrics" / "t.md").write_text(TASK)
    (folder / "data").mkdir()
    (folder / "data" / "own.md").write_text(TASK)
    named = ("own.md", "../rubrics/t.md", str(folder / "rubrics" / "t.md"))
    rows = [row | {"rubric": name} for row, name in zip(answers(3), named, strict=True)]
    write_answers(folder, rows, data=["data/answers.jsonl"])
    (folder / "answers.jsonl").rename(folder / "data" / "answers.jsonl")
    told = call("run --json", cwd=folder)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["verdicts"] == 3


def test_check_reads_no_rubric_outside_of_the_units_folder(folder):
    rows = [row | {"rubric": "../home/task.md"} for row in answers(1)]
    write_rows(folder, rows, "units.jsonl")
    write_rows(folder, [{"unit": "t0/m", "reply": "{}"}], "replies.jsonl")
    flags = ("--protocol", "weighted", "--units", "units.jsonl", "--replies", "replies.jsonl")
    told = call("check", *flags, cwd=folder)
    assert told.returncode == 3 and is_told(told.stderr, "files.rubric_outside"), told.stderr
    assert SECRET not in told.stdout + told.stderr


OUTSIDE = {
    "data": "samples.jsonl",
    "rubric": "rubric.json",
    "prompt": "prompt.md",
    "protocol": "mine",
    "judges": "replies.jsonl",
    "store": "other.db",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", OUTSIDE)
def test_a_suite_names_nothing_outside_unless_that_is_allowed(attempt, way, key):
    folder = attempt.folder
    (folder / "x").mkdir()
    name = WAYS[way](folder, OUTSIDE[key])
    value = {"data": [name], "store": {"url": f"sqlite:{name}"}}.get(key, name)
    judge = {"model": f"replay/{name}"} if key == "judges" else GOOD
    write_suite(folder, 2, judge, **({} if key == "judges" else {key: value}))
    told = call("run", cwd=folder)
    assert told.returncode == 2, told.stderr
    assert is_told(told.stderr, "suite.outside") and "evenhand.toml" in told.stderr
    assert "--allow-outside" in told.stderr or key == "store"
    assert SECRET not in told.stdout + told.stderr
    assert not list(folder.glob("evenhand.db*")) and not (attempt.home / "other.db").exists()
    allowed = call("run --allow-outside", cwd=folder)
    assert allowed.returncode not in (2, 3), allowed.stderr


def test_what_the_command_line_names_is_the_users_own(folder):
    write_rows(folder.parent / "home", [{"unit": "u0", "reply": "{}"}], "replies.jsonl")
    write_suite(folder, 1, store={"url": "sqlite:../home/other.db"})
    flags = ("--store", "sqlite:../home/mine.db", "--judge", "replay/../home/replies.jsonl")
    told = call("run", *flags, cwd=folder)
    assert told.returncode in (0, 1), told.stderr
    assert (folder.parent / "home" / "mine.db").exists()
    env = {"EVENHAND_STORE__URL": "sqlite:../home/mine.db"}
    assert call("runs", cwd=folder, env=env).returncode == 0


def test_readers_open_no_store_outside_because_a_suite_says_so(folder):
    write_suite(folder.parent / "home", 1, store={"url": "sqlite:other.db"})
    assert call("run", cwd=folder.parent / "home").returncode == 0
    write_suite(folder, 1, store={"url": "sqlite:../home/other.db"})
    for command in ("runs", "show", "export latest -o x.jsonl"):
        told = call(command, cwd=folder)
        assert told.returncode == 2 and is_told(told.stderr, "suite.outside"), told.stderr
    assert call("runs --store sqlite:../home/other.db", cwd=folder).returncode == 0


def test_dotenv_names_no_store(folder):
    """`.env` lies in the folder, so whoever made the suite may have written it."""
    write_suite(folder, 1)
    (folder / ".env").write_text("EVENHAND_STORE__URL=sqlite:../home/other.db\n")
    for command in ("run", "runs", "show"):
        told = call(command, cwd=folder)
        assert told.returncode == 2 and is_told(
            told.stderr, "judges.not_read_here", name="EVENHAND_STORE__URL"
        )
    assert not (folder.parent / "home" / "other.db").exists()


def test_a_protocol_folder_links_to_nothing_outside(attempt):
    attempt.protocol("prompts/en.md", "id_rsa")
    for command in ("run", "run --allow-outside", "protocols show mine"):
        told = call(command, cwd=attempt.folder)
        assert told.returncode == 2 and is_told(told.stderr, "files.outside"), told.stderr
        assert SECRET not in told.stdout + told.stderr


def test_a_protocol_folder_without_end_is_refused(attempt):
    (attempt.copied() / "again").symlink_to(attempt.folder / "mine")
    attempt.suite(protocol="mine")
    told = call("run", cwd=attempt.folder)
    assert told.returncode == 2 and is_told(told.stderr, "files.too_deep"), told.stderr


TEXTS = {
    "rubric": "huge.json",
    "prompt": "huge.md",
    "suite": "evenhand.toml",
    "protocol": "mine/protocol.toml",
}


@pytest.mark.parametrize("key", TEXTS)
def test_texts_larger_than_any_text_are_refused(attempt, key):
    attempt.copied()
    name = TEXTS[key].partition("/")[0]
    write_suite(attempt.folder, 1, **({} if key == "suite" else {key: name}))
    with (attempt.folder / TEXTS[key]).open("ab") as file:
        file.truncate(64 * 1024 * 1024)
    told = call("run", cwd=attempt.folder)
    assert told.returncode == 2 and is_told(told.stderr, "files.too_large"), told.stderr


def test_code_is_run_by_run_alone(folder, tmp_path):
    """Looking at a suite, or at what it left in the store, imports nothing of it."""
    write_suite(folder, 2)
    assert call("run", cwd=folder).returncode == 0
    ran = tmp_path / "ran"
    write_suite(folder, 2, {"model": "python/trap:good"})
    (folder / "trap").mkdir()
    trap = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\nfrom judge import good\n"
    (folder / "trap" / "__init__.py").write_text(trap)
    write_rows(folder, [{"unit": "u0", "reply": "{}"}], "replies.jsonl")
    looks = ["run --dry-run", "doctor", "check --units samples.jsonl --replies replies.jsonl"]
    looks += ["runs", "show", "export latest -o x.jsonl", "settle latest"]
    for command in looks:
        told = call(command, cwd=folder)
        assert not ran.exists(), command
        assert is_told(told.stderr, "cli.code_not_run") == ("--dry-run" in command)
    assert call("run", cwd=folder).returncode == 0
    assert ran.exists()
