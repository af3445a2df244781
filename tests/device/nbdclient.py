"""A small NBD client that says exactly what goes over the wire, nonsense included."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

READ, WRITE, DISCONNECT, FLUSH, TRIM, CACHE, ZERO, STATUS = range(8)
FUA = 1
REQUEST = 0x25609513
REPLY = 0x67446698
OPTION = 0x49484156454F5054
REFUSED = 0x80000000
GO, STARTTLS, ABORT = 7, 5, 2


class Gone(Exception):
    """The server has closed the connection."""


class Client:
    """One connection; replies come in any order."""

    def __init__(self, path: Path, *, handshake: bool = True) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        self.size = 0
        self.flags = 0
        self.cookie = 0
        self.reads: dict[int, int] = {}
        if handshake:
            self.greet()
            self.go()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def raw(self, data: bytes) -> None:
        """Sends bytes as they are."""
        try:
            self.socket.sendall(data)
        except OSError as e:
            raise Gone from e

    def take(self, n: int) -> bytes:
        """The next `n` bytes."""
        parts = []
        while n > 0:
            try:
                part = self.socket.recv(n)
            except ConnectionError as e:
                raise Gone from e
            if not part:
                raise Gone
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def greet(self) -> None:
        """The first exchange."""
        assert self.take(16) == b"NBDMAGICIHAVEOPT"
        self.take(2)
        self.raw(struct.pack(">I", 3))

    def option(self, number: int, data: bytes = b"") -> tuple[int, bytes]:
        """Sends an option; gives the reply's kind and content."""
        self.raw(struct.pack(">QII", OPTION, number, len(data)) + data)
        _, _, kind, length = struct.unpack(">QIII", self.take(20))
        return kind, self.take(length)

    def go(self) -> None:
        """Chooses the default export."""
        kind, data = self.option(GO, struct.pack(">IH", 0, 0))
        while kind != 1:
            assert kind < REFUSED, f"refused: {kind:#x} {data!r}"
            if data[:2] == b"\0\0":
                self.size, self.flags = struct.unpack(">QH", data[2:12])
            _, _, kind, length = struct.unpack(">QIII", self.take(20))
            data = self.take(length)

    def send(self, kind: int, offset: int, length: int, data: bytes = b"", flags: int = 0) -> int:
        """Sends a request; gives its cookie."""
        self.cookie += 1
        if kind == READ:
            self.reads[self.cookie] = length
        self.raw(struct.pack(">IHHQQI", REQUEST, flags, kind, self.cookie, offset, length) + data)
        return self.cookie

    def reply(self) -> tuple[int, int, bytes]:
        """The next reply: cookie, error number, and what was read."""
        magic, error, cookie = struct.unpack(">IIQ", self.take(16))
        assert magic == REPLY, f"{magic:#x}"
        length = self.reads.pop(cookie, 0)
        return cookie, error, self.take(length) if error == 0 else b""

    def ask(self, kind: int, offset: int, length: int, data: bytes = b"", flags: int = 0) -> tuple[int, bytes]:
        """One request and its reply: error number, and what was read."""
        cookie = self.send(kind, offset, length, data, flags)
        got, error, found = self.reply()
        assert got == cookie
        return error, found
