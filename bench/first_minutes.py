"""A stopwatch for a newcomer: from nothing to the first report, in commands, wall and CPU seconds,
beside promptfoo and Inspect doing their own first example.

Every tool is installed afresh into a folder that vanishes, from the registries that this machine
uses, and judges or answers against a server on the loopback: no key, no network but the
registries. What cannot be installed or does not run is said, with the end of its message.

    python bench/first_minutes.py                     all three
    python bench/first_minutes.py --only evenhand     one of them
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PATIENCE = 900
"""Seconds that a step may take."""
MESSAGE_CHARS = 300
TABLE = """question,model,answer
{rows}"""
INSPECT = """from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

@task
def hello_world():
    samples = [Sample(input=f"Say {n}", target=str(n)) for n in range(10)]
    return Task(dataset=samples, solver=[generate()], scorer=includes())
"""


@dataclass(frozen=True)
class Step:
    """A command that a reader types, and the exit codes of a success."""

    command: str
    is_install: bool = False
    codes: Sequence[int] = (0,)


@dataclass
class Tool:
    """What a newcomer does with a tool, and what it took."""

    name: str
    steps: Sequence[Step]
    files: Mapping[str, str] = field(default_factory=dict)
    report: str = ""
    """The file that is the first report."""
    install: tuple[float, float] = (0.0, 0.0)
    use: tuple[float, float] = (0.0, 0.0)
    trouble: str = ""
    megabytes: float = 0.0


def tools(promptfoo: str) -> list[Tool]:
    """The three tools, each with the way that its own first page shows."""
    rows = "\n".join(f"Why {n}?,{model},Because of {n}." for n in range(20) for model in "ab")
    return [
        Tool(
            "evenhand",
            [
                Step(f"git clone -q {ROOT} evenhand", is_install=True),
                Step("python3 -m venv env && env/bin/pip install -q './evenhand[report]'", True),
                Step("env/bin/evenhand init my-suite --data answers.csv"),
                Step("env/bin/evenhand run my-suite"),
                Step("cd my-suite && ../env/bin/evenhand report -o report.html"),
            ],
            {"answers.csv": TABLE.format(rows=rows)},
            "my-suite/report.html",
        ),
        Tool(
            "promptfoo",
            [
                Step(f"npm install --silent --no-audit --no-fund promptfoo@{promptfoo}", True),
                Step("npx promptfoo init --no-interactive"),
                # 100 is how it ends where an answer fails its test, as most do at the loopback.
                Step("npx promptfoo eval --no-cache -o report.html", codes=(0, 100)),
            ],
            report="report.html",
        ),
        Tool(
            "inspect",
            [
                Step("python3 -m venv env && env/bin/pip install -q inspect-ai openai", True),
                Step("env/bin/inspect eval hello.py --model openai/gpt-4.1-mini --display plain"),
                Step("env/bin/inspect view bundle --log-dir logs --output-dir report"),
            ],
            {"hello.py": INSPECT},
            "report/index.html",
        ),
    ]


def environment(url: str, folder: Path) -> dict[str, str]:
    return os.environ | {
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": url,
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo-config"),
    }


def measured(step: Step, folder: Path, environ: Mapping[str, str]) -> tuple[float, float, str]:
    """Wall and CPU seconds of a step, and what went wrong."""
    before, start = os.times(), time.monotonic()
    log = folder / "log"
    with log.open("w+b") as output:
        process = subprocess.Popen(
            ["bash", "-c", step.command],
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code: int | None = process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            code = None
    wall, after = time.monotonic() - start, os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    if code in step.codes:
        return wall, cpu, ""
    end = " ".join(log.read_text(errors="replace").split())[-MESSAGE_CHARS:]
    return wall, cpu, f"`{step.command}` ended with {code or f'no end after {PATIENCE} s'}: {end}"


def carry_out(tool: Tool, url: str, folder: Path) -> None:
    """All steps of a tool, up to one that fails."""
    for name, text in tool.files.items():
        (folder / name).write_text(text)
    environ = environment(url, folder)
    for step in tool.steps:
        wall, cpu, tool.trouble = measured(step, folder, environ)
        spent = tool.install if step.is_install else tool.use
        total = spent[0] + wall, spent[1] + cpu
        if step.is_install:
            tool.install = total
        else:
            tool.use = total
        if tool.trouble:
            return
    if not (folder / tool.report).exists():
        tool.trouble = f"it wrote no {tool.report}"
    sizes = (path.lstat().st_size for path in folder.rglob("*") if path.is_file())
    tool.megabytes = sum(sizes) / 1e6


def table(done: Sequence[Tool]) -> list[str]:
    """The figures, a line per tool."""
    head = ("tool", "commands", "install s", "CPU s", "first report s", "CPU s", "MB on disk")
    lines = ["{:10}{:>10}{:>12}{:>8}{:>16}{:>8}{:>12}".format(*head)]
    for tool in done:
        if tool.trouble:
            lines.append(f"{tool.name:10}could not be measured: {tool.trouble}")
            continue
        figures = (*tool.install, *tool.use)
        texts = [f"{figure:.1f}" for figure in figures]
        lines.append(
            "{:10}{:>10}{:>12}{:>8}{:>16}{:>8}{:>12}".format(
                tool.name, len(tool.steps), *texts, f"{tool.megabytes:,.0f}"
            )
        )
    return lines


def main() -> None:
    from tests.provider import child

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="evenhand, promptfoo, inspect")
    parser.add_argument(
        "--promptfoo", default="latest", help="its version; the newest needs Node 22"
    )
    options = parser.parse_args()
    chosen = [t for t in tools(options.promptfoo) if not options.only or t.name in options.only]
    with child("reading") as url:
        for tool in chosen:
            with tempfile.TemporaryDirectory(prefix=f"first-minutes-{tool.name}-") as folder:
                carry_out(tool, url, Path(folder))
    print("\n".join(table(chosen)))


if __name__ == "__main__":
    main()
