"""Where a served device listens: unix sockets, NBD over TCP with TLS, iSCSI."""

from __future__ import annotations

import errno
import os
import re
import socket
import stat
from pathlib import Path
from typing import Any

from .errors import InputError

# The longest path that a unix socket can have on Linux, with the closing zero.
SOCKET_PATH = 108


def address(listen: str | None) -> tuple[str, int] | None:
    """Host and port at which a --listen has NBD, none where that is a unix socket; refuses anything else."""
    if not listen or re.fullmatch(r"unix:.+", listen):
        return None
    found = re.fullmatch(r"(tcp|iscsi):(\[[^]]+\]|[^:]+):(\d{1,5})", listen)
    if not found or not 0 < int(found[3]) < 65536:
        raise InputError(
            f"--listen {listen}: write unix:PATH, tcp:HOST:PORT (NBD), such as tcp:127.0.0.1:10809, or iscsi:HOST:PORT"
        )
    return (found[2], int(found[3])) if found[1] == "tcp" else None


def anywhere(listen: str | None) -> str | None:
    """A --listen that means the same wherever the device is started from."""
    if listen and listen.startswith("unix:"):
        return f"unix:{Path(listen.removeprefix('unix:')).absolute()}"
    return listen


def clear(path: Path) -> None:
    """Takes away a unix socket that a server left. Refuses what is no socket, and one at which somebody listens."""
    if len(os.fsencode(path)) >= SOCKET_PATH:
        raise InputError(f"--listen unix:{path}: longer than the {SOCKET_PATH - 1} bytes of a socket's path")
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise InputError(f"--listen unix:{path}: what is there is no socket: name another path")
        with socket.socket(socket.AF_UNIX) as there:
            if there.connect_ex(str(path)) == 0:
                raise InputError(f"--listen unix:{path}: another program listens there: stop it, or name another path")
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as e:
        raise InputError(f"--listen unix:{path}: {e.strerror}") from None


def check_free(listen: str | None, path: Path) -> None:
    """Refuses a --listen at which a server could not listen now; `path`: its unix socket, which iSCSI has beside it."""
    if address(listen) is None:
        clear(path)
        # As the server: the path that clear() leaves free may lie in a folder that is missing, or takes no files.
        remedy = "name a path in a folder that is there and takes files"
        _bind(f"--listen unix:{path}", remedy, socket.AF_UNIX, str(path))
        path.unlink()
    found = re.fullmatch(r"(?:tcp|iscsi):\[?([^]]+?)\]?:(\d+)", listen or "")
    if not found:
        return
    host, port = found.groups()
    said = f"--listen {listen}"
    try:
        places = socket.getaddrinfo(
            None if host == "*" else host, int(port), 0, socket.SOCK_STREAM, 0, socket.AI_PASSIVE
        )
    except OSError as e:
        raise InputError(f"{said}: {e.strerror}: name an address of this machine") from None
    failed = []
    for family, _, _, _, at in places:
        try:
            _bind(said, "stop what listens there, or name another address or port", family, at)
        except InputError as e:
            failed.append(e)
    # A server takes those of them that it can have.
    if len(failed) == len(places):
        raise failed[0]


def _bind(said: str, remedy: str, family: int, at: Any) -> None:
    with socket.socket(family) as tried:
        if family != socket.AF_UNIX:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            tried.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            tried.bind(at)
            if family != socket.AF_UNIX:
                tried.listen()
        except OSError as e:
            if e.errno == errno.EACCES and family != socket.AF_UNIX:
                remedy = "ports below 1024 are root's: name another port"
            raise InputError(f"{said}: {(e.strerror or str(e)).lower()}; {remedy}") from None


def iscsi(listen: str | None) -> str | None:
    """HOST:PORT of a --listen for iSCSI."""
    return listen.removeprefix("iscsi:") if listen and listen.startswith("iscsi:") else None


def check_chap(listen: str | None, chap: Path | None) -> str | None:
    """The file of CHAP secrets for the server; refuses one that nobody would read."""
    if chap is None:
        return None
    if iscsi(listen) is None:
        raise InputError("--chap is for --listen iscsi:HOST:PORT")
    if not chap.is_file():
        raise InputError(f"--chap {chap}: {_no_file(chap)}; write 'initiator NAME SECRET' into one, and chmod 600")
    return str(chap.absolute())


def _no_file(path: Path) -> str:
    """What is said of a path that has to be a file and is none."""
    return "a folder, not a file" if path.is_dir() else "no such file"


def check_tls(listen: str | None, tls: dict[str, str]) -> None:
    """Refuses TLS that could not be had, before anything is made."""
    if not tls:
        return
    if address(listen) is None:
        raise InputError("TLS is for --listen tcp:HOST:PORT: a unix socket is private to the user as it is")
    if len(tls) > 1:
        raise InputError("give either --tls-certificates or --tls-psk")
    for name in ("ca-cert.pem", "server-cert.pem", "server-key.pem") if "certificates" in tls else ():
        if not (Path(tls["certificates"]) / name).is_file():
            raise InputError(f"--tls-certificates {tls['certificates']}: {name} is missing there (see man nbdkit-tls)")
    if "psk" in tls and not (keys := Path(tls["psk"])).is_file():
        raise InputError(f"--tls-psk {keys}: {_no_file(keys)}; make one: psktool -u NAME -p FILE")
    if "psk" in tls and not _has_key(keys):
        raise InputError(
            f"--tls-psk {keys}: it has no line NAME:KEY with a key in hex; make one: psktool -u NAME -p FILE"
        )


def _has_key(keys: Path) -> bool:
    """Whether a file has a name and a key, as clients and the server need it."""
    try:
        with keys.open(encoding="utf-8") as file:
            return any(re.fullmatch(r"[^:\s]+:([0-9a-fA-F]{2})+", line.strip()) for line in file)
    except UnicodeDecodeError:
        return False
    except OSError as e:
        raise InputError(f"--tls-psk {keys}: {e.strerror}: check the owner and the mode") from None
