"""What Evenhand keeps is readable for its owner alone, whatever the umask."""

from __future__ import annotations

import json
import os

import pytest

from evenhand.judges.trust import TrustedHosts
from tests.suites import evenhand_here, write_suite


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder, pattern):
    return {path.name: path.stat().st_mode & 0o777 for path in folder.glob(pattern)}


def test_a_store_is_its_owners_alone(tmp_path, umask):
    write_suite(tmp_path, 2)
    assert evenhand_here("run", cwd=tmp_path).returncode == 0
    assert set(modes(tmp_path, "evenhand.db*").values()) == {0o600}


WATCHING = """
import json, pathlib
FOLDER = pathlib.Path(__file__).parent
async def good(messages, schema, params):
    modes = {path.name: path.stat().st_mode & 0o777 for path in FOLDER.glob("evenhand.db*")}
    (FOLDER / "modes.json").write_text(json.dumps(modes))
    return "{}"
"""


def test_so_are_its_log_and_whatever_lies_beside_it_during_a_run(tmp_path, umask):
    write_suite(tmp_path, 2, judge=WATCHING)
    evenhand_here("run", cwd=tmp_path)
    files = json.loads((tmp_path / "modes.json").read_text())
    assert {"evenhand.db", "evenhand.db-wal", "evenhand.db-shm"} <= files.keys()
    assert set(files.values()) <= {0o600, 0o700}


def test_a_store_that_was_opened_to_others_stays_as_the_user_wants_it(tmp_path):
    write_suite(tmp_path, 1)
    assert evenhand_here("run", cwd=tmp_path).returncode == 0
    (tmp_path / "evenhand.db").chmod(0o640)
    write_suite(tmp_path, 2)
    assert evenhand_here("run", cwd=tmp_path).returncode == 0
    assert modes(tmp_path, "evenhand.db") == {"evenhand.db": 0o640}


def test_so_is_the_list_of_trusted_hosts(tmp_path, umask):
    file = tmp_path / "config" / "trusted-hosts"
    TrustedHosts(file).remember(["a.test"])
    TrustedHosts(file).remember(["b.test"])
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
