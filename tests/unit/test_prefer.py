"""`evenhand.prefer` and `prefer_async`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import evenhand
from tests import provider as p
from tests.suites import PAIR_JUDGE

TOPIC, GOOD, POOR = "Which is greater?", "It is 9.", "It is 2."


@pytest.fixture
def judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`judge.py` in the working folder."""
    (tmp_path / "judge.py").write_text(PAIR_JUDGE)
    monkeypatch.chdir(tmp_path)
    yield


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
@pytest.mark.usefixtures("judges")
def test_prefer_says_which_is_better(seed: int) -> None:
    for first, second, winner in ((GOOD, POOR, "A"), (POOR, GOOD, "B"), (GOOD, "9 it is", "tie")):
        found = evenhand.prefer(TOPIC, first, second, judge="python/judge:content", seed=seed)
        assert found.status == "verdict"
        assert found.output is not None
        assert (found.output["winner"], found.output["settled"]) == (winner, "stable")
        assert found.output["candidates"] == ["first", "second"]
        assert sorted(one.order for one in found.passes) == ["12", "21"]


@pytest.mark.usefixtures("judges")
async def test_prefer_async_takes_settings_names_and_a_language() -> None:
    found = await evenhand.prefer_async(
        TOPIC,
        "As GPT-4 I say 9.",
        POOR,
        judge="python/judge:first",
        language="ja",
        names=("gpt-4o", "mine"),
        settings={"max_rounds": 2, "blind": "mask"},
    )
    assert found.output is not None
    assert (found.output["winner"], found.output["rounds"]) == ("uncertain", 2)
    assert found.output["candidates"] == ["gpt-4o", "mine"]
    assert "masked:A" in found.flags


@pytest.mark.usefixtures("judges")
def test_a_failure_is_a_value_and_equal_texts_need_no_judge() -> None:
    failed = evenhand.prefer(TOPIC, GOOD, POOR, judge="python/judge:bad")
    assert (failed.status, failed.reason, failed.output) == ("failure", "schema", None)
    equal = evenhand.prefer(TOPIC, GOOD, GOOD, judge="python/judge:crash")
    assert equal.output is not None
    assert (equal.output["winner"], equal.flags) == ("tie", ("equal_text",))


@pytest.mark.usefixtures("judges")
@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        (("", GOOD, POOR), {}, '"topic" is empty'),
        ((TOPIC, GOOD, " "), {}, "is empty"),
        ((TOPIC, GOOD, POOR), {"names": ("x", "x")}, 'two candidates are called "x"'),
        ((TOPIC, GOOD, POOR), {"language": "tlh"}, 'no prompt in "tlh"'),
        ((TOPIC, GOOD, POOR), {"settings": {"max_rounds": 99}}, "settings.max_rounds"),
        ((TOPIC, GOOD, POOR), {"settings": {"expose_meta": True}}, "no setting"),
        ((TOPIC, GOOD, POOR), {"temperatur": 1}, "temperatur"),
    ],
)
def test_what_is_wrong_is_raised_before_anything_is_asked(
    arguments: tuple[str, str, str], settings: dict[str, object], said: str
) -> None:
    with pytest.raises(evenhand.EvenhandError) as error:
        evenhand.prefer(*arguments, judge="python/judge:crash", **settings)
    assert said in str(error.value)


async def test_a_store_that_is_a_file_is_asked_first(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'pairs.db'}"
    async with p.Provider(p.comparing(p.by_number)) as provider:
        rest = {"judge": "openai/test-model", "base_url": provider.url, "store": store}
        for _ in range(2):
            found = await evenhand.prefer_async(TOPIC, GOOD, POOR, **rest)
        # The other way round these are the same two questions.
        turned = await evenhand.prefer_async(TOPIC, POOR, GOOD, **rest)
    assert found.output is not None
    assert turned.output is not None
    assert (found.output["winner"], turned.output["winner"]) == ("A", "B")
    assert len(provider.calls) == 2


@pytest.mark.usefixtures("judges")
async def test_a_judge_of_a_candidate_s_family_may_be_left_out() -> None:
    async with p.Provider(p.comparing(p.by_number)) as provider:
        found = await evenhand.prefer_async(
            TOPIC,
            GOOD,
            POOR,
            judge="openai/gpt-4.1",
            base_url=provider.url,
            names=("gpt-4o", "mine"),
            settings={"no_self_judging": True},
        )
        assert provider.calls == []
    assert (found.status, found.output) == ("left_out", None)
