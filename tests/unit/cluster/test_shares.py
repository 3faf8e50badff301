"""What actors may send of a minute together: each request of the minute counts against one of them,
and those of an actor that died against its successor."""

import pytest

from evenhand import jsontext
from evenhand.cluster.actor import RunActor, suite_of_run
from evenhand.cluster.driver import without_password
from evenhand.manifest import Manifest
from evenhand.runs.recorded import Recorded
from evenhand.store.ports import RunRow, SentRequest


def sent(*names):
    return [SentRequest(name, "account", at, 10) for at, name in enumerate(names)]


@pytest.mark.parametrize("actors", [1, 2, 3])
def test_what_was_sent_before_is_divided(actors):
    before = sent("a", "b", "c", "d", "e-1-f")
    parts = [
        RunActor("url", "run", number, actors, "e2").counted(before) for number in range(actors)
    ]
    assert sorted(item for part in parts for item in part) == sorted(before)


def test_a_successor_counts_what_the_actor_before_it_has_sent():
    minute = sent("old", "d-0-x", "d-1-y", "d-1-z")
    first, second = (RunActor("url", "run", number, 2, "d").counted(minute) for number in (0, 1))
    assert [item.name for item in first] == ["old", "d-0-x"]
    assert [item.name for item in second] == ["d-1-y", "d-1-z"]


def test_nodes_are_told_no_password():
    address = "postgresql://judge:secret@db/judging?schema=a&password=other"
    assert without_password(address) == "postgresql://judge@db/judging?schema=a"


def test_routes_that_the_store_names_are_not_taken_for_the_users():
    """A node would send its key through a proxy that whoever wrote the manifest has chosen."""
    terms = {
        "judges": [
            {"model": "openai/m", "base_url": "http://a/v1", "proxy": "http://b:1", "ca_file": "c"}
        ]
    }
    manifest = Manifest(protocol="rubric", terms=jsontext.dump(terms))
    suite = suite_of_run(Recorded(RunRow("id", "name", "j", "", "", 1), manifest))
    for route in ("http://a/v1", "http://b:1", "c"):
        assert suite.address_place(route) == "the store"
