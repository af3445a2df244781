"""A served drive that tells what a write destroyed: its map beside what a raw medium of the same drive lost."""

from __future__ import annotations

import random
from pathlib import Path

from nbdclient import FLUSH, READ, TRIM, WRITE, Client
from served import Make

BLOCK = 512
# Blocks of the disk that are used: some fifteen tracks.
SPACE = 8000


def states(client: Client) -> list[bytes | None]:
    """What each block holds; None where reading it is an error."""
    read = (client.ask(READ, block * BLOCK, BLOCK) for block in range(SPACE))
    return [None if error else data for error, data in read]


def test_the_map_says_what_the_medium_destroyed(make: Make, fast: Path) -> None:
    """The same writes to both. What the host wrote is destroyed on the raw medium where the layer refuses to read it,
    and nowhere else, also after a kill; what the host did not write, or discarded, is nothing that could be lost.
    """
    rng = random.Random(11)
    told = make("told", store=str(fast / "told"), layer="caveat-scriptor,tracks=3")
    raw = make("raw", store=str(fast / "raw"), layer="raw,tracks=3", errors=True)
    wrote: set[int] = set()
    with Client(told.socket()) as one, Client(raw.socket()) as two:
        for _ in range(400):
            first, blocks = rng.randrange(SPACE - 200), rng.randrange(1, 200)
            data = rng.randbytes(blocks * BLOCK)
            for client in (one, two):
                assert client.ask(WRITE, first * BLOCK, len(data), data)[0] == 0
            wrote.update(range(first, first + blocks))
            if rng.random() < 0.1:
                first, blocks = rng.randrange(SPACE - 100), rng.randrange(1, 100)
                assert one.ask(TRIM, first * BLOCK, blocks * BLOCK)[0] == 0
                wrote.difference_update(range(first, first + blocks))
        assert one.ask(FLUSH, 0, 0)[0] == 0
        mapped, destroyed = states(one), states(two)
    lost = [block for block in wrote if mapped[block] is None]
    assert len(lost) > 100
    assert len(wrote) - len(lost) > 100
    for block in wrote:
        assert mapped[block] == destroyed[block], f"block {block}"
    others = (mapped[block] for block in range(SPACE) if block not in wrote)
    assert all(data == bytes(BLOCK) for data in others)
    assert told.ask("stats")["media"]["layer"]["blocks_lost_now"] == len(lost)

    told.kill()
    told.start()
    assert told.ask("stats")["media"]["layer"]["blocks_lost_now"] == len(lost)
    with Client(told.socket()) as client:
        assert states(client) == mapped


def test_a_guarded_drive_refuses_what_would_destroy_data(make: Make) -> None:
    """Blocks of the second track are needed; the first track is written when they are discarded."""
    device = make(layer="caveat-scriptor,tracks=2,guard=refuse")
    track = 500 * BLOCK
    data = random.Random(3).randbytes(track)
    with Client(device.socket()) as client:
        assert client.ask(WRITE, track, track, data)[0] == 0
        assert client.ask(WRITE, 0, track, data)[0] != 0
        assert client.ask(READ, track, track)[1] == data
        assert client.ask(TRIM, track, track)[0] == 0
        assert client.ask(WRITE, 0, track, data)[0] == 0
        assert client.ask(READ, 0, track)[1] == data
    assert device.ask("stats")["media"]["layer"]["writes_refused"] == 1
