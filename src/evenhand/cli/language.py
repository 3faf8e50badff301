"""The language that a command speaks: that of the suite, else of EVENHAND_LANG, else of the locale.

Help is English, and so is JSON. So is all else where the output cannot hold another script.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import click

from evenhand.cli.streams import is_utf8
from evenhand.words import LANGUAGES, Words, words

VARIABLES = ("EVENHAND_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
"""The first of these that is set names the language."""


@dataclass
class Speaker:
    """The language of one command, known better once its suite or run is read."""

    language: str

    def choose(self, language: str | None) -> None:
        """Speak the language of a suite or a run, if it is one of ours."""
        if language in LANGUAGES and is_utf8(sys.stdout) and is_utf8(sys.stderr):
            self.language = language

    @property
    def words(self) -> Words:
        return words(self.language, plain=True)


def users_speaker(environ: Mapping[str, str] = os.environ) -> Speaker:
    """Return the speaker for a user's environment."""
    speaker = Speaker("en")
    value = next((environ[name] for name in VARIABLES if environ.get(name)), "")
    speaker.choose(value[:2].lower())
    return speaker


def speaker() -> Speaker:
    """Return the speaker of the command that runs; English outside of a command."""
    context = click.get_current_context(silent=True)
    found = context.find_object(Speaker) if context is not None else None
    return found or Speaker("en")


def terminal_words(faults: Collection[str] = ()) -> Words:
    """Return the words for what the command that runs prints; `faults` are dimensions that its
    figures turn round."""
    return speaker().words.naming_faults(faults)
