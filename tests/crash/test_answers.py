"""kill -9 while answers are made and judged: nothing is lost, and paid twice at most what was in
flight."""

from tests.answering import made_rows, write_answering
from tests.crash.watching import killed_at_random
from tests.provider import child
from tests.suites import at

QUESTIONS = 40


def test_killed_at_random_moments_while_answering_and_judging(tmp_path):
    with child(delay=0.005) as url:
        model = {"model": "openai/answering", "base_url": url}
        write_answering(tmp_path, QUESTIONS, model, at(url), limits={"concurrency": 8})
        units = 2 * QUESTIONS
        kills = {"kills": 20, "concurrency": 8}
        killed_at_random(tmp_path, url, calls=2 * units, units=units, **kills)
    named = {(row["question"], row["prompt_variant"]) for row in made_rows(tmp_path)}
    assert len(named) == len(made_rows(tmp_path)) == units
