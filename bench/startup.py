"""How long commands take before they do anything: the best of several, in CPU ms.

Bytecode is kept in a folder of its own and written by a first run, as an installation has it,
whatever the environment says.

    python bench/startup.py
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = {
    "python alone": ["-c", "pass"],
    "import evenhand": ["-c", "import evenhand"],
    "evenhand --help": ["-m", "evenhand", "--help"],
    "evenhand run --help": ["-m", "evenhand", "run", "--help"],
    "evenhand run --dry-run": ["-m", "evenhand", "run", "--dry-run"],
    "and a price looked up": ["-m", "evenhand", "run", "--dry-run", "listed.toml"],
}
SUITE = """
name = "startup"
protocol = "rubric"
data = ["samples.jsonl"]
rubric = "Is the answer polite?"
[[judges]]
model = "openai/gpt-4.1-mini"
base_url = "http://127.0.0.1:9/v1"
"""
PRICE = "price = { input = 0.4, output = 1.6 }\n"


def cpu_ms(arguments: list[str], folder: Path) -> float:
    """What one process takes."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        cwd=folder,
        env=environment,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "evenhand.toml").write_text(SUITE + PRICE)
        (folder / "listed.toml").write_text(SUITE)
        row = {"id": "1", "question": "How are you?", "model_output": "Thank you, well."}
        (folder / "samples.jsonl").write_text(json.dumps(row) + "\n")
        for case, arguments in CASES.items():
            print(f"{case:24}{min(cpu_ms(arguments, folder) for _ in range(7)):8.0f} ms")


if __name__ == "__main__":
    main()
