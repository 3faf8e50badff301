"""What may touch what, as the design has it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_rooms_touch_only_what_they_may():
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
