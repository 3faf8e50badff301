"""Rank the candidates of many votes with `evenhand leaderboard`, as a user starts it: from the
store to the table on the screen, in CPU seconds of all cores and peak MB.

    python bench/stats.py                                  1,000,000 votes, 100 candidates
    python bench/stats.py --candidates 1000 --votes 20000 --topics 800
    python bench/stats.py --soft --candidates 25 --votes 25755 --topics 800
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SEED = 1


def votes(options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both candidates of each vote, and how far the first won: 1, 0 or, for a tie, half."""
    rng = np.random.default_rng(SEED)
    strength = rng.normal(size=options.candidates)
    first = rng.integers(options.candidates, size=options.votes)
    second = (
        first + 1 + rng.integers(options.candidates - 1, size=options.votes)
    ) % options.candidates
    gap, chance = strength[first] - strength[second], rng.random(options.votes)
    win, loss = np.exp(gap / 2), np.exp(-gap / 2)
    chance *= win + loss + 0.5
    won = np.where(chance < win, 1.0, np.where(chance < win + loss, 0.0, 0.5))
    return first, second, won


def board(options: argparse.Namespace) -> None:
    """Import the votes, and measure the command that ranks their candidates."""
    command = [sys.executable, "-m", "evenhand"]
    with tempfile.TemporaryDirectory() as name:
        store = ["--store", f"sqlite:{Path(name, 'votes.db')}"]
        write_votes(Path(name, "votes.csv"), options)
        arguments = [
            "import",
            str(Path(name, "votes.csv")),
            "--kind",
            "votes",
            "--judge",
            "judge",
            *store,
        ]
        subprocess.run([*command, *arguments], check=True, stdout=subprocess.DEVNULL)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        arguments = ["leaderboard", "votes", *store]
        text = subprocess.run([*command, *arguments], check=True, stdout=subprocess.PIPE).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{options.candidates:,} candidates, {options.votes:,} votes")
    print(f"{worked:.1f} s of CPU, {after.ru_maxrss / 1024:.0f} MB, {len(text.splitlines())} lines")


def write_votes(path: Path, options: argparse.Namespace) -> None:
    """The votes as a table; soft ones say how far the second is preferred."""
    first, second, won = votes(options)
    chance = np.random.default_rng(SEED).random(options.votes)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["unit", "first", "second", "preference" if options.soft else "winner"])
        for number in range(options.votes):
            unit = f"q{number % options.topics if options.topics else number}"
            winner = {1.0: "first", 0.0: "second", 0.5: "tie"}[float(won[number])]
            preference = round((1 - won[number] + chance[number]) / 2, 6)
            names = [f"m{first[number]:04}", f"m{second[number]:04}"]
            table.writerow([unit, *names, preference if options.soft else winner])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--topics", type=int, default=0, help="0: each vote has its own")
    parser.add_argument("--soft", action="store_true", help="preferences between 0 and 1")
    board(parser.parse_args())


if __name__ == "__main__":
    main()
