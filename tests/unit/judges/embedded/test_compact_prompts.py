from importlib.resources import files

import pytest

from evenhand.kinds.prompt import Prompt

LANGUAGES = ("en", "ru", "zh", "ja")
FOLDER = files("evenhand.kinds") / "builtin" / "rubric" / "prompts" / "compact"


def prompt(language):
    return Prompt.parse(FOLDER.joinpath(f"{language}.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_the_same_things_around_the_same_data(language):
    found = prompt(language)
    assert found.system is not None
    assert found.system.names == frozenset()
    assert found.user.names == {"question", "model_output", "extras", "rubric"}
    assert found.again.names == {"problems"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_prompt_ends_with_instructions_and_not_with_data(language):
    data, instruction = prompt(language).user.parts[-2:]
    assert data == "rubric"
    assert "JSON" in instruction


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_prompt_is_short(language):
    found = prompt(language)
    assert sum(map(len, (*found.system.parts, *found.user.parts))) < 450
