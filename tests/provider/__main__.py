"""The provider in a process of its own: prints its URL, and answers until it is ended."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys

from tests.provider.process import BEHAVIOURS, named_provider


async def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--behaviour", default="fast", help=", ".join(sorted(BEHAVIOURS)))
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--certificate", default="", help="of `fast`: a certificate and its key")
    parser.add_argument("--piped", action="store_true", help="end when stdin is closed")
    asked = parser.parse_args()
    provider = named_provider(asked.behaviour, asked.delay, asked.certificate)
    await provider.start(asked.port)
    print(provider.url, flush=True)
    if asked.piped:
        await asyncio.to_thread(sys.stdin.read)
    else:
        await asyncio.Event().wait()
    await provider.stop()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
