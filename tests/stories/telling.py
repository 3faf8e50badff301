"""The commands of a page, as a reader would type them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.waiting import PATIENCE

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def blocks(page, heading, language="sh"):
    """The blocks of a language in a section of a page, in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {heading}\n")
    assert found, f"{page} has no section {heading}"
    section = re.split(r"^## ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return [code for name, code in BLOCK.findall(section) if name == language]


def at_loopback(url):
    """The environment of somebody whose key is set and whose judge is on the loopback."""
    keep = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EVENHAND_", "OPENAI_", "GITHUB_"))
        and not name.endswith("_API_KEY")
    }
    return keep | {
        "PATH": f"{Path(sys.executable).parent}:{keep['PATH']}",
        "OPENAI_API_KEY": "key-of-a-test",
        "OPENAI_BASE_URL": url,
        "COLUMNS": "80",
    }


def typed(script, folder, environ):
    """A script in a shell that ends with the first command that fails."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def told(script, folder, environ):
    """What a script that must succeed says."""
    done = typed(script, folder, environ)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def flowing(text):
    """Without the line breaks of a terminal."""
    return " ".join(text.split())
