"""The socket that pages are served from."""

from __future__ import annotations

import asyncio
import socket

import pytest

from evenhand.web.app import listening


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_answer_does_not_wait_until_the_last_one_is_acknowledged(host):
    without_delay = asyncio.get_running_loop().create_future()

    async def accept(reader, writer):
        accepted = writer.get_extra_info("socket")
        without_delay.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listening(host, 0) as bound:
        async with await asyncio.start_server(accept, sock=bound):
            _, writer = await asyncio.open_connection(*bound.getsockname()[:2])
            assert await without_delay
            writer.close()
