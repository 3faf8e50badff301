"""The hosts that keys may go to: named by the user on the command line, or when asked."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from evenhand.cli.common import notice
from evenhand.judges.trust import KeyUse, Trust, TrustedHosts, host_named

trust_option = click.option(
    "--trust-host",
    "trusted",
    multiple=True,
    metavar="HOST",
    help="Let keys go to this host, now and later. Repeatable.",
)


def users_trust(trusted: Sequence[str]) -> Trust:
    """Return what the user allows: these hosts, remembered; others where a terminal can be
    asked. Raise UsageError."""
    hosts = TrustedHosts()
    hosts.remember([host_named(host) for host in trusted])
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return Trust(hosts, ask=_ask if is_terminal else None, tell=notice)


def _ask(use: KeyUse) -> bool:
    notice(f"{use.sentence()}.")
    question = f"May {use.host} have this key, now and later?"
    return click.confirm(question, default=False, err=True)
