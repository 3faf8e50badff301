"""Bradley-Terry with a bootstrap on many votes: Evenhand beside evalica and scikit-learn, one run.

All three rate the same votes, ties as half a win, which is what all of them can do. The others
resample votes and fit again; they are given a few rounds, and their time is taken times what is
missing. Every library runs in a process of its own: "MB more" is its peak less what it held when it
had the votes. Seconds depend on the machine, and on what else it does; ratios are of CPU seconds.

    python bench/stats.py                                  1,000,000 votes, 100 candidates
    python bench/stats.py --votes 100000 --candidates 50 --rounds 200 --their-rounds 5
    python bench/stats.py --topics 5000                    votes that cluster by topic
    python bench/stats.py --board --candidates 1000 --votes 20000 --topics 800
    python bench/stats.py --board --soft --candidates 25 --votes 25755 --topics 800

With `--board` the votes are imported, and what is measured is `evenhand leaderboard` as a user
starts it, from the store to the table on the screen: CPU seconds of all cores, and its peak in MB.
"""

from __future__ import annotations

import argparse
import csv
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SEED = 1
ELO = 400 / np.log(10)


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


def measured(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What it gives, seconds on the wall and of all cores."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, time.perf_counter() - wall, time.process_time() - cpu


def peak() -> float:
    """The most memory that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def centred(logs: np.ndarray) -> list[float]:
    return list(map(float, ELO * (logs - logs.mean())))


def evenhand(options: argparse.Namespace, ties: str) -> dict[str, Any]:
    from evenhand.stats.ranking.bootstrap import rate
    from evenhand.stats.ranking.duels import Duels, sample_of

    first, second, won = votes(options)
    topic = np.arange(options.votes)
    if options.topics:
        topic = np.random.default_rng(SEED).integers(options.topics, size=options.votes)
    duels = Duels(
        size=options.candidates, first=first, second=second, won=won, tie=won == 0.5, topic=topic
    )
    rate(sample_of(_few(duels), ties), 2, np.random.default_rng(0))  # type: ignore[arg-type]
    held = peak()

    def work() -> Any:
        sample = sample_of(duels, ties)  # type: ignore[arg-type]
        return rate(sample, options.rounds, np.random.default_rng(SEED))

    found, wall, cpu = measured(work)
    low, high = found.interval(0.95)
    return {
        "ratings": centred(found.ratings),
        "width": float(ELO * np.median((high - low)[:-2])),
        "wall": wall,
        "cpu": cpu,
        "rounds": options.rounds,
        "beyond": peak() - held,
    }


def _few(duels: Any) -> Any:
    """A little of it, so that what is imported late is there before the clock starts."""
    from dataclasses import replace

    names = ("first", "second", "won", "tie", "topic")
    return replace(duels, **{name: getattr(duels, name)[:2000] for name in names})


def evalica(options: argparse.Namespace) -> dict[str, Any]:
    import evalica as library

    first, second, won = votes(options)
    names = [f"m{number:04}" for number in range(options.candidates)]
    left, right = [names[i] for i in first.tolist()], [names[i] for i in second.tolist()]
    said = {1.0: library.Winner.X, 0.0: library.Winner.Y, 0.5: library.Winner.Draw}
    winners = [said[one] for one in won.tolist()]
    held = peak()
    fitted = library.bradley_terry(left, right, winners, tolerance=1e-9, limit=10_000)
    scores = fitted.scores.sort_index().to_numpy()

    def work() -> Any:
        return library.bootstrap(
            library.bradley_terry,
            left,
            right,
            winners,
            n_resamples=options.their_rounds,
            bootstrap_method="percentile",
            random_state=SEED,
        )

    _, wall, cpu = measured(work)
    return {
        "ratings": centred(np.log(scores)),
        "wall": wall,
        "cpu": cpu,
        "rounds": options.their_rounds + 1,  # it fits all votes first
        "beyond": peak() - held,
    }


def scikit_learn(options: argparse.Namespace) -> dict[str, Any]:
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    first, second, won = votes(options)
    rng = np.random.default_rng(SEED)
    held = peak()

    def fit(rows: np.ndarray) -> np.ndarray:
        """A row a vote; a tie is a win and a loss of half the weight."""
        number, at = len(rows), np.arange(len(rows))
        signs = np.concatenate([np.ones(number), -np.ones(number)])
        places = (np.tile(at, 2), np.concatenate([first[rows], second[rows]]))
        design = sparse.csr_array((signs, places), shape=(number, options.candidates))
        tie = won[rows] == 0.5
        every = sparse.vstack([design, design[tie]])
        said = np.concatenate([np.where(tie, 1, won[rows]), np.zeros(int(tie.sum()))])
        weights = np.concatenate([np.where(tie, 0.5, 1.0), np.full(int(tie.sum()), 0.5)])
        model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-6, max_iter=1000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(model.fit(every, said, sample_weight=weights).coef_[0])

    found = fit(np.arange(options.votes))
    rounds = max(1, options.their_rounds // 2)
    every = options.votes
    _, wall, cpu = measured(lambda: [fit(rng.integers(every, size=every)) for _ in range(rounds)])
    return {
        "ratings": centred(found),
        "wall": wall,
        "cpu": cpu,
        "rounds": rounds,
        "beyond": peak() - held,
    }


SUBJECTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "evenhand": lambda options: evenhand(options, "half"),
    "evenhand, Davidson": lambda options: evenhand(options, "davidson"),
    "evalica": evalica,
    "scikit-learn": scikit_learn,
}


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
        arguments = ["leaderboard", "latest", "--bootstrap", str(options.rounds), *store]
        text = subprocess.run([*command, *arguments], check=True, stdout=subprocess.PIPE).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{options.candidates:,} candidates, {options.votes:,} votes, {options.rounds} rounds")
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


def show(options: argparse.Namespace, found: dict[str, dict[str, Any]]) -> None:
    ours = found["evenhand"]
    topics = f"{options.topics:,} topics" if options.topics else "each a topic of its own"
    size = f"{options.candidates} candidates, {options.rounds} rounds"
    print(f"{options.votes:,} votes, {topics}; {size}")
    print(f"{'':20} {'wall s':>8} {'CPU s':>8} {'CPU ratio':>9} {'MB more':>8} {'Elo apart':>10}")
    for name, one in found.items():
        times = options.rounds / one["rounds"]
        apart = np.abs(np.array(one["ratings"]) - np.array(ours["ratings"])).max()
        shown = "" if "Davidson" in name else f"{apart:10.4f}"
        said = "" if times == 1 else f"  {one['rounds']} rounds, times {times:g}"
        print(
            f"{name:20} {one['wall'] * times:8.1f} {one['cpu'] * times:8.1f}"
            f" {one['cpu'] * times / ours['cpu']:9.1f} {one['beyond']:8.0f} {shown}{said}"
        )
    print(f"median width of evenhand's 95 % intervals: {ours['width']:.1f} Elo")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--their-rounds", type=int, default=6)
    parser.add_argument("--topics", type=int, default=0, help="0: every vote is a topic")
    parser.add_argument("--board", action="store_true", help="measure the command")
    parser.add_argument("--soft", action="store_true", help="preferences between 0 and 1")
    parser.add_argument("--only", choices=list(SUBJECTS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(SUBJECTS[options.only](options)))
        return
    if options.board:
        board(options)
        return
    found: dict[str, dict[str, Any]] = {}
    for name in SUBJECTS:
        if options.topics and "evenhand" not in name:
            continue
        asked = [sys.executable, __file__, *sys.argv[1:], "--only", name]
        found[name] = json.loads(subprocess.run(asked, check=True, capture_output=True).stdout)
    show(options, found)


if __name__ == "__main__":
    main()
