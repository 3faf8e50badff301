import pytest

from evenhand.exchange import Message
from evenhand.judges.embedded.priors import Priors
from evenhand.judges.embedded.walk import Choice

NEUTRAL = (Message("user", "Grade N/A."),)
WANTED = (Choice(("score",), (1, 2)),)
ODDS = {("score",): (-0.1, -2.5)}


class Measure:
    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return ODDS


def test_a_prior_is_measured_once_and_outlives_the_process(tmp_path):
    measure = Measure()
    one = Priors("model", tmp_path)
    assert one.of(NEUTRAL, WANTED, measure) == one.of(NEUTRAL, WANTED, measure) == ODDS
    assert Priors("model", tmp_path).of(NEUTRAL, WANTED, measure) == ODDS
    assert measure.times == 1


def test_another_model_prompt_or_choice_has_its_own_prior(tmp_path):
    measure = Measure()
    other = (Message("user", "Grade something."),)
    Priors("model", tmp_path).of(NEUTRAL, WANTED, measure)
    Priors("other", tmp_path).of(NEUTRAL, WANTED, measure)
    Priors("model", tmp_path).of(other, WANTED, measure)
    Priors("model", tmp_path).of(NEUTRAL, (Choice(("score",), (1, 3)),), measure)
    assert measure.times == 4


@pytest.mark.parametrize("text", ["", "[]", "[[1,2]]", "[[-0.1]]", "[[-0.1, NaN]]", "{}", "[3]"])
def test_a_damaged_file_is_measured_again(tmp_path, text):
    Priors("model", tmp_path).of(NEUTRAL, WANTED, Measure())
    (file,) = tmp_path.iterdir()
    file.write_text(text)
    measure = Measure()
    assert Priors("model", tmp_path).of(NEUTRAL, WANTED, measure) == ODDS
    assert measure.times == 1


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert Priors("model", tmp_path / "file").of(NEUTRAL, WANTED, Measure()) == ODDS
