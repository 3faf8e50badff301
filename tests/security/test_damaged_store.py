"""A store whose texts are not what was written is told in the same words through every door: the
commands, Python and the pages."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from urllib.parse import quote, unquote

import pytest

import evenhand
from evenhand.errors import StoreError
from tests.sentences import is_told, refused
from tests.suites import evenhand_here, write_answers, write_pairs, write_suite
from tests.unit.web.serving import served

SUITES = {
    "rubric": write_suite,
    "pairwise": write_pairs,
    "weighted": write_answers,
}
DAMAGES = {
    "unit cut off": "UPDATE units SET body=substr(body, 1, 20)",
    "unit of another shape": "UPDATE units SET body='[]'",
    "judgment cut off": "UPDATE judgments SET body=substr(body, 1, 40)",
    "judgment of another shape": "UPDATE judgments SET body=json_set(body, '$.fixes', 1)",
    "judging cut off": "UPDATE judgings SET record=substr(record, 1, 40)",
    "run cut off": "UPDATE runs SET manifest=substr(manifest, 1, 10)",
}
UNREAD = {
    "meta of another shape": "UPDATE units SET body=json_set(body, '$.meta', 5)",
    "meta that says two things": "UPDATE units SET body=json_set(body, '$.meta',"
    """ json('{"model": "a", "model": "b"}'))""",
}
"""Of what not every door looks at."""
PARTS = ("units", "changes", "protocol", "report")
ADVICE = "evenhand store verify"


@pytest.fixture(scope="module", params=SUITES)
def sound(request, tmp_path_factory):
    """The folder of a store in which all is well, of each kind."""
    folder = tmp_path_factory.mktemp("sound")
    SUITES[request.param](folder)
    assert evenhand_here("run", cwd=folder).returncode == 0
    return folder


def damaged(sound, folder, sql):
    """A store that was altered by another hand, its run and a unit of it."""
    shutil.copytree(sound, folder, dirs_exist_ok=True)
    with closing(sqlite3.connect(folder / "evenhand.db")) as database:
        assert database.execute(sql).rowcount
        database.commit()
        run, unit = database.execute("SELECT runs.id, units.id FROM runs, units").fetchone()
    return folder / "evenhand.db", f"/runs/{run}", f"unit?id={quote(unit)}"


@pytest.mark.parametrize("damage", DAMAGES | UNREAD)
def test_damage_is_told_through_every_door(sound, tmp_path, damage):
    store, run, unit = damaged(sound, tmp_path, (DAMAGES | UNREAD)[damage])
    name = unquote(unit.removeprefix("unit?id="))
    for command in ("show", "export -o rows.csv", "report -o report.html"):
        outcome = evenhand_here(command, cwd=tmp_path)
        assert outcome.returncode in (0, 6), (command, outcome.stderr)
    with served(store) as site:
        for path in ("/", run, *(f"{run}/{part}" for part in (*PARTS, unit))):
            page = site.get(path)
            assert page.status_code in (200, 503), path
    if damage in UNREAD:
        return
    assert page.status_code == 503 and ADVICE in page.text
    outcome = evenhand_here("show latest", name, cwd=tmp_path)
    assert (outcome.returncode, ADVICE in outcome.stderr) == (6, True), outcome.stderr
    verified = evenhand_here("store verify", cwd=tmp_path)
    assert verified.returncode == 6
    told = is_told(verified.stdout, "store.unreadable_judgment")
    assert told or damage != "judgment cut off", verified.stdout
    with refused(StoreError, "web.store_cannot_read") as caught:
        list(evenhand.open(store=f"sqlite:{store}").judgments())
    assert ADVICE in caught.value.advice
