"""The settings that judges are found and paid by, and where each stands: in the environment of the
user, or in the `.env` of a folder, which whoever made the folder may have written.

`.env` sets keys and addresses of judges and nothing else. It is taken as it stands: a value that
named another variable could carry a key of the user's into an address of somebody else's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from evenhand.errors import UsageError, quoted
from evenhand.folders import read_text
from evenhand.judges.providers import PROVIDERS

FILE = ".env"
_READ = frozenset(
    name
    for provider in PROVIDERS.values()
    for name in (*provider.key_names, *provider.url_names, *provider.service.version_names)
)
_NETWORK = re.compile(r"\w+_proxy|(ssl|requests|curl)_\w*(cert|ca)_?\w*", re.IGNORECASE)
"""Proxies and certificates: who sets them reads what is sent."""
_REFERENCE = re.compile(r"\$\{[^}]*\}")


class Environment(dict[str, str]):
    """The settings by name. `places` says which file sets one that the user's environment lacks;
    `unread` names proxies and certificates of a `.env`, which are left alone."""

    def __init__(
        self,
        values: Mapping[str, str],
        places: Mapping[str, str] | None = None,
        unread: tuple[str, ...] = (),
    ) -> None:
        super().__init__(values)
        self.places, self.unread = dict(places or {}), unread


def place_of(environment: Mapping[str, str], name: str) -> str:
    """Return the file that sets a name; empty where the environment of the user does."""
    return environment.places.get(name, "") if isinstance(environment, Environment) else ""


def environment(folder: Path | None = None) -> Environment:
    """Return the environment over the `.env` of a folder, by default the working folder: what is
    really set wins. Raises UsageError for settings of Evenhand in `.env`: they would go unread."""
    path = (folder or Path.cwd()) / FILE
    settings = _settings(path)
    for name in settings:
        if name.startswith("EVENHAND_"):
            raise UsageError(
                f"{quoted(name)[1:-1]} is not read from here,"
                " where keys and addresses of judges may stand",
                where=str(path),
                advice="Set it in the environment, or its key in evenhand.toml.",
            )
    values = {name: value for name, value in settings.items() if name in _READ}
    for name, value in values.items():
        if reference := _REFERENCE.search(value):
            raise UsageError(
                f"{name} names another variable, {quoted(reference[0])}, which is not filled in",
                where=str(path),
                advice="Write the value itself, or set it in the environment.",
            )
    unread = tuple(name for name in settings if _NETWORK.fullmatch(name))
    return Environment(values | dict(os.environ), dict.fromkeys(values, str(path)), unread)


def _settings(path: Path) -> dict[str, str]:
    """Return the settings of a `.env` that the environment lacks; none if there is no such file."""
    # A folder of that name is somebody's virtual environment.
    if not path.exists() or path.is_dir():
        return {}
    from dotenv import dotenv_values

    values = dotenv_values(stream=StringIO(read_text(path, "the file")), interpolate=False)
    return {
        name: value
        for name, value in values.items()
        if value is not None and name not in os.environ
    }
