"""The load counts what it says: each answer that is not its twin's, whoever else is waiting."""

import asyncio

from load import EPISODES, Play, load
from websockets.asyncio.server import serve


def test_wrong_answers_are_counted_however_many_sessions_wait():
    async def measure(plays, sessions):
        async def answer(socket):
            async for message in socket:
                await asyncio.sleep(0)
                await socket.send(f"{message}!")

        async with serve(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            return await load(f"ws://127.0.0.1:{port}", plays, sessions, 0.5)

    right, wrong = Play(["a", "b"], ["a!", "b!"]), Play(["a", "b"], ["a!", "b?"])
    assert asyncio.run(measure([right] * 16 * EPISODES, 16)).wrong == 0
    turn = asyncio.run(measure(([right] * 7 + [wrong]) * 16 * (EPISODES // 8), 16))
    # One answer in sixteen is wrong, and one in eight of the steps, up to where each session stood
    # at the end.
    assert abs(turn.wrong - turn.steps / 8) < 16 * EPISODES / 4
