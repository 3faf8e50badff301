"""How long it takes to import the package and to print its help: the best of several, in CPU ms."""

from __future__ import annotations

import resource
import subprocess
import sys

CASES = {
    "python alone": ["-c", "pass"],
    "import evenhand": ["-c", "import evenhand"],
    "evenhand --help": ["-m", "evenhand", "--help"],
    "evenhand run --help": ["-m", "evenhand", "run", "--help"],
}


def cpu_ms(arguments: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


if __name__ == "__main__":
    for name, arguments in CASES.items():
        print(f"{name:22}{min(cpu_ms(arguments) for _ in range(7)):8.0f} ms")
