"""A small iSCSI initiator that builds its PDUs by hand and leaves everything else to the test."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

LOGIN, COMMAND, LOGOUT = 0x03, 0x01, 0x06
RESPONSE, DATA_IN, LOGOUT_RESPONSE, ASYNC = 0x21, 0x25, 0x26, 0x32
GOOD, CHECK_CONDITION = 0x00, 0x02


class Pdu(NamedTuple):
    """What came: a header of 48 bytes, and data."""

    header: bytes
    data: bytes

    @property
    def opcode(self) -> int:
        return self.header[0] & 0x3F


class Initiator:
    """A session with one connection."""

    def __init__(self, port: int, target: str, name: str = "iqn.test") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.number = 0
        text = f"InitiatorName={name}\0TargetName={target}\0".encode()
        # Immediate, from the operational stage to the full feature phase.
        self.send(LOGIN | 0x40, text, flags=0x87)
        answer = self.take()
        assert answer.header[36:38] == b"\0\0", "the login failed"

    def __enter__(self) -> Initiator:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, opcode: int, data: bytes = b"", *, flags: int = 0x80, expected: int = 0, cdb: bytes = b"") -> None:
        """Sends a PDU with the next number."""
        head = struct.pack(
            ">BBxxB3s8xIIII", opcode, flags, 0, len(data).to_bytes(3, "big"), 1, expected, self.number, 0
        )
        self.number += opcode & 0x40 == 0
        self.socket.sendall(head + cdb.ljust(16, b"\0") + data + bytes(-len(data) % 4))

    def part(self, n: int) -> bytes:
        """The next `n` bytes."""
        data = b""
        while len(data) < n:
            piece = self.socket.recv(n - len(data))
            if not piece:
                raise ConnectionError("the target ended the connection")
            data += piece
        return data

    def take(self) -> Pdu:
        """The next PDU."""
        header = self.part(48)
        length = int.from_bytes(header[5:8], "big")
        return Pdu(header, self.part(length + -length % 4)[:length])

    def ask(self, cdb: bytes, room: int = 0) -> tuple[int, bytes]:
        """Carries out a command that brings no data: its status, and what it reads, or its sense data."""
        self.send(COMMAND, flags=0xC0 if room else 0x80, expected=room, cdb=cdb)
        data = b""
        while True:
            answer = self.take()
            data += answer.data
            if answer.opcode == RESPONSE:
                return answer.header[3], data[2:] if answer.header[3] == CHECK_CONDITION else data
            if answer.header[1] & 1:
                return answer.header[3], data

    def log_out(self) -> None:
        self.send(LOGOUT)
        assert self.take().opcode == LOGOUT_RESPONSE
