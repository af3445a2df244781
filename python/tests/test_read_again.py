"""What is read in pieces, tried again or remembered: ranges of objects, digests of files, a drive's folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from smrlab import sysfs, urls
from smrlab.sweeps.identity import Digests


def test_a_range_is_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 4 bytes, three ahead and six kept; the digest is of all, though little was read."""
    import fsspec

    monkeypatch.setattr(urls, "BLOCK", 4)
    monkeypatch.setattr(urls, "KEPT", 6)
    data = bytes(range(65, 65 + 26))
    fsspec.filesystem("memory").pipe_file("/ranges/a", data)
    for offset, length in ((0, 1), (2, 5), (3, 1), (24, 9), (0, 26), (26, 1)):
        assert urls.Ranges("memory://ranges/a").read(offset, length) == data[offset : offset + length]
    part = urls.Ranges("memory://ranges/a", hashing=True)
    assert (part.size, part.read(0, 4)) == (26, data[:4])
    assert list(part._blocks) == [1, 2, 3, 0]
    assert part.digest() == hashlib.sha256(data).hexdigest()
    assert (part.moved, len(part._blocks)) == (26, 6)
    monkeypatch.setattr("time.sleep", lambda _: None)
    short = urls.Ranges("memory://ranges/a")
    monkeypatch.setattr(short, "_system", SimpleNamespace(cat_file=lambda *_, **__: b"abc"))
    with pytest.raises(OSError, match="3 bytes came where 4 were asked for"):
        short.read(0, 4)
    # More than was asked for, which is all of it where a server knows no ranges.
    for sent, said in ((5, "5 bytes came where 4 were asked for"), (26, "the server sends whole files only")):
        short = urls.Ranges("memory://ranges/a")
        monkeypatch.setattr(short, "_system", SimpleNamespace(cat_file=lambda *_, n=sent, **__: bytes(n)))
        with pytest.raises(OSError, match=said):
            short.read(0, 4)


def test_a_store_that_stumbles_is_asked_six_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses double; what is not there is not asked for again."""
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    answers: Iterator[Any] = iter([*[ValueError("no")] * 5, 7])

    def call() -> Any:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert urls.patiently(call) == 7
    assert slept == [0.2, 0.4, 0.8, 1.6, 3.2]
    answers = iter([ValueError("no")] * 7)
    with pytest.raises(OSError, match=r"no \(6 attempts\)"):
        urls.patiently(call)
    answers = iter([FileNotFoundError("gone"), 1])
    with pytest.raises(FileNotFoundError):
        urls.patiently(call)


def sha(data: bytes) -> str:
    """The digest of some bytes."""
    return hashlib.sha256(data).hexdigest()


def test_digests_are_of_the_content_and_remembered(tmp_path: Path) -> None:
    """A file that changed is read again, what somebody else has read is believed; a folder is its files in order."""
    kept: dict[str, bytes] = {}
    document = lambda name: json.loads(kept[name]) if name in kept else None  # noqa: E731
    store = cast("Any", SimpleNamespace(document=document, write=kept.__setitem__))
    names = [tmp_path / name for name in ("b.csv", "a.csv", ".c.csv")]
    for path in names:
        path.write_bytes(path.name.encode())
    digests = Digests(store)
    assert digests.files(str(tmp_path)) == [str(names[1]), str(names[0])]
    assert digests.of(str(names[0])) == sha(b"b.csv")
    digests.learn("s3://bucket/o", "7 tag", "abc")
    assert digests.of("s3://bucket/o") == "abc"
    digests.save()
    names[0].write_bytes(b"more")
    assert Digests(store).of(str(names[0])) == sha(b"more")
    names[0].unlink()
    assert digests.of(str(names[0])) == sha(b"b.csv"), "told once in a plan"


HINT = "a rotating drive that takes TRIM maps its blocks: it may be drive-managed SMR"


@pytest.mark.parametrize(
    ("found", "follows"),
    [
        ({"model": "ATA ST8000DM004-2CX188"}, {"model_list": "Seagate, CMR and SMR list: SMR"}),
        ({"model": "ST8000DM"}, {}),
        ({"zoned": "none", "identify_zones": "drive-managed", "zbc_page": "host-aware"}, {"kind": "host-aware"}),
        ({"zoned": "host-managed", "identify_zones": "drive-managed"}, {"kind": "host-managed"}),
        ({"inquiry_type": 20}, {"kind": "host-managed"}),
        ({"rotational": True, "trim": True}, {"hint": HINT}),
        ({"rotational": True, "trim": True, "solid_state": True}, {}),
        ({"rotational": False, "trim": True}, {}),
        ({"rotational": True}, {}),
        ({"rotational": True, "unmap": True, "zoned": "drive-managed"}, {"kind": "drive-managed"}),
    ],
)  # fmt: skip
def test_what_follows_from_what_a_drive_says(found: dict[str, Any], follows: dict[str, str]) -> None:
    """A maker's list goes by how a model begins; of kinds the strongest counts; a hint is all that is left."""
    assert sysfs._follows(found) == follows


def test_a_drives_folder_says_whether_it_turns(tmp_path: Path) -> None:
    """As the kernel has it."""
    for name, text in (("queue/rotational", "1\n"), ("queue/discard_max_bytes", "0\n"), ("queue/zoned", "none\n")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert sysfs.described(tmp_path, {}) == {"zoned": "none", "rotational": True, "trim": False}
