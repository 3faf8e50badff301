"""What a run of the tests leaves out for want of something is said in one line, with the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/published/test_sequential.py",
    "tests/browser/test_view.py::test_everything_can_be_done_with_the_keyboard",
    "tests/unit/store/test_postgres.py::test_stores_that_are_made_at_the_same_moment_are_one",
    "tests/unit/judges/embedded/test_real_model.py::test_any_text_can_be_judged",
)


def test_records_browser_server_and_model_that_are_absent_are_named_with_the_reason(tmp_path):
    nowhere = str(tmp_path / "nowhere")
    absent = {"PATH": nowhere, "EVENHAND_PUBLISHED": nowhere, "EVENHAND_MODELS": nowhere}
    absent["EVENHAND_POSTGRES"] = nowhere
    no_index = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_TIMEOUT": "1"}
    kept = {name: value for name, value in os.environ.items() if name != "EVENHAND_CHROMIUM"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *TESTS],
        cwd=ROOT,
        env=kept | absent | no_index,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.split(" tests left out: ") for line in done.stdout.splitlines()]
    reasons = [line[1] for line in lines if len(line) == 2]
    assert [reason.partition(" (")[0].partition(": ")[0] for reason in reasons] == [
        f"no published records in {nowhere}",
        "the embedded model smollm2-135m cannot be fetched",
        "there is no PostgreSQL server",
        "there is no chromium",
    ], done.stdout
    assert done.returncode == 0, done.stdout
    assert " failed" not in done.stdout and " error" not in done.stdout.splitlines()[-1]
