"""The server of a device: its process, where it listens, and what it answers."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from . import recording
from .errors import InputError, MissingError, SmrlabError
from .listening import SOCKET_PATH, address, check_free, iscsi

START_S = 20.0
# What a server ends with where there is no room for it, which nothing that it was asked for could mend.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
Say = Callable[[str], None]


def plugin() -> Path:
    """The nbdkit plugin that was built with the project."""
    here = Path(__file__).resolve().parent
    target = Path(os.environ.get("CARGO_TARGET_DIR") or here.parent.parent / "target")
    name = "libsmrlab_nbdkit.so"
    own = os.environ.get("SMRLAB_NBDKIT_PLUGIN")
    for path in [Path(own)] if own else [here / name, target / "release" / name]:
        if path.exists():
            return path
    raise MissingError("what serves devices is not built: run 'make setup' in the sources")


class Server:
    """The server of one device: of the directory that has its configuration, sockets and log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name

    def config(self) -> dict[str, Any]:
        """What the server is given."""
        return self._document("config.json", "store")

    def server(self) -> dict[str, Any]:
        """How it is served."""
        return self._document("server.json", "listen", "tls")

    def _document(self, name: str, *keys: str) -> dict[str, Any]:
        """One of its files, with these keys at least. Raises InputError where it is gone, or is none of those files."""
        path = self.path / name
        try:
            doc: Any = json.loads(path.read_text())
        except (OSError, ValueError):
            doc = None
        if not isinstance(doc, dict) or not all(key in doc for key in keys):
            raise InputError(f"{path} is damaged: mend it, or smrlab device remove {self.name}, with what was on it")
        return doc

    def socket(self) -> Path:
        """The NBD socket."""
        listen = self.server()["listen"] or ""
        return Path(listen.removeprefix("unix:")) if listen.startswith("unix:") else self.path / "nbd.sock"

    def uri(self) -> str:
        """What NBD clients are given; with TLS it names the client's side of certificates or keys."""
        address = self.tcp()
        if address is None:
            return f"nbd+unix:///?socket={quote(str(self.socket()))}"
        tls: dict[str, str] = self.server()["tls"]
        place = f"{address[0]}:{address[1]}"
        if "certificates" in tls:
            return f"nbds://{place}/?tls-certificates={quote(tls['certificates'])}"
        if "psk" in tls:
            user = Path(tls["psk"]).read_text().partition(":")[0].strip()
            return f"nbds://{user}@{place}/?tls-psk-file={quote(tls['psk'])}"
        return f"nbd://{place}"

    def tcp(self) -> tuple[str, int] | None:
        """Host and port, where it listens on TCP."""
        return address(self.server()["listen"])

    def iscsi(self) -> str | None:
        """What iSCSI initiators are given, where it has iSCSI."""
        place = iscsi(self.server()["listen"])
        name = re.sub(r"[^a-z0-9.]", "-", self.name.lower())
        return place and f"iscsi://{place}/iqn.2026-01.smrlab:{name}/0"

    def pid(self) -> int | None:
        """The server's process, if it runs."""
        try:
            pid = int((self.path / "pid").read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if str(self.path).encode() in command else None

    def running(self) -> bool:
        """Whether it is served now."""
        return self.pid() is not None

    def died(self) -> bool:
        """Whether the server ended without a goodbye: one that is stopped takes its control socket away."""
        return not self.running() and (self.path / "control.sock").exists()

    def last_events(self) -> list[dict[str, Any]]:
        """What befell the server that ran last, as far as that was written down."""
        found = []
        with contextlib.suppress(OSError):
            for line in (self.path / "events.jsonl").read_text(errors="replace").splitlines():
                # The last line may be cut.
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return found

    def death(self) -> dict[str, Any] | None:
        """The end of a server that died, as an event: when its log was last written to, and how that ends, if known."""
        if not self.died():
            return None
        events = self.last_events() or [{"time_s": 0.0}]
        first, last = events[0]["time_s"], events[-1]["time_s"]
        event = {"number": events[-1].get("number", 0) + 1, "time_s": last, "kind": "died", "block": None}
        event["text"] = "the server ended without a goodbye"
        with contextlib.suppress(OSError):
            log = self.path / "log"
            said = log.read_text(errors="replace").strip().splitlines()
            # Its shell tells what ended it; where that ended too, the log's end is another server's.
            if said and (at := log.stat().st_mtime) >= first:
                # The clock of files goes in steps.
                event |= {"time_s": max(at, last), "text": f"{event['text']}; the log ends with: {said[-1]}"}
        return event

    def clients(self) -> list[str]:
        """Who is connected, in words."""
        if not self.running():
            return []
        told = {c["peer"]: c for c in self.ask("clients")}
        return [f"{c['name']} (pid {c['pid']})" if c.get("pid") else c["address"] for c in told.values()]

    def ask(self, cmd: str, *, answered: bool = True, **more: Any) -> Any:
        """Sends a command to the server; gives its answer."""
        if not self.running():
            how = "died, restart with" if self.died() else "is not being served"
            raise InputError(f"{self.name} {how}: smrlab device start {self.name}")
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(self.path / "control.sock"))
            s.sendall((json.dumps({"cmd": cmd, **more}) + "\n").encode())
            line = s.makefile("rb").readline()
        if not line:
            if answered:
                raise MissingError(f"{self.name}: the server went away: see {self.path / 'log'}")
            return None
        doc = json.loads(line)
        if "error" in doc:
            raise _fault(f"{self.name}: {doc['error']}")
        return doc["ok"]

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """While no other command starts or removes the device: those wait for each other."""
        try:
            directory = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise InputError(f"there is no device '{self.name}' any more") from None
        there = False
        try:
            # Some file systems of networks lock no directories.
            with contextlib.suppress(OSError):
                fcntl.flock(directory, fcntl.LOCK_EX)
            with contextlib.suppress(OSError):
                there = os.path.samestat(os.fstat(directory), self.path.stat())
            if not there:
                raise InputError(f"there is no device '{self.name}' any more")
            yield
        finally:
            os.close(directory)

    def start(self, say: Say = lambda _: None) -> None:
        """Starts the server and waits until it answers."""
        if self.running():
            raise InputError(f"{self.name} is being served already")
        if shutil.which("nbdkit") is None:
            raise MissingError("nbdkit is missing; all that devices use: sudo apt-get install nbdkit fuse3 libnbd-bin")
        if len(os.fsencode(self.path / "control.sock")) >= SOCKET_PATH:
            raise InputError(f"{self.path} is too long for a socket: set SMRLAB_STATE to a shorter directory")
        with self.alone():
            self._start(say)

    def _start(self, say: Say) -> None:
        # By another command, which was waited for.
        if self.running():
            raise InputError(f"{self.name} is being served already")
        self._await_end()
        folder = self.server().get("folder")
        if folder and not Path(folder).is_dir():
            raise InputError(f"{self.name}: {folder} is gone, and with it the drive file: put them there again")
        check_free(self.server()["listen"], self.socket())
        for old in (self.path / "pid", self.path / "control.sock"):
            old.unlink(missing_ok=True)
        if earlier := recording.put_aside(self.config().get("record")):
            say(f"{self.name}: what clients did until now is in {earlier}")
        log = (self.path / "log").open("ab")
        before = log.tell()
        with log:
            server = subprocess.Popen(
                self._command(),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                umask=0o077,
            )
        try:
            self._await(server, before)
        except BaseException:
            (self.path / "control.sock").unlink(missing_ok=True)
            raise

    def _command(self) -> list[str]:
        tls: dict[str, str] = self.server()["tls"]
        command = ["nbdkit", "--foreground"]
        command += ["--pidfile", str(self.path / "pid"), "--threads", "64"]
        if (tcp := self.tcp()) is not None:
            command += ["--ipaddr", tcp[0].strip("[]"), "--port", str(tcp[1])]
        else:
            command += ["--unix", str(self.socket())]
        if tls:
            command += ["--tls=require"] + [f"--tls-{kind}={path}" for kind, path in tls.items()]
        if "certificates" in tls:
            # Without it whoever reaches the port could write.
            command += ["--tls-verify-peer"]
        command += [str(plugin()), f"config={self.path / 'config.json'}"]
        # In the foreground nbdkit ends with its parent: a shell that waits for it is one that stays.
        return ["sh", "-c", '"$@"; exit $?', "smrlab-device", *command]

    def _await(self, server: subprocess.Popen[bytes], before: int) -> None:
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if server.poll() is not None:
                said = (self.path / "log").read_bytes()[before:].decode(errors="replace").strip()
                message = re.sub(r"(?m)^nbdkit: (\w+\[\d+\]: )?(error: )?", "", said)
                raise _fault(f"{self.name} could not be served: {message or 'the server ended'}")
            if self._listening():
                return
            time.sleep(0.01)
        server.kill()
        raise MissingError(f"{self.name}: the server did not come up in {START_S:.0f} s: see {self.path / 'log'}")

    def _listening(self) -> bool:
        """Whether both the NBD side (its pid file comes last) and the control socket are up."""
        if not self.running():
            return False
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect_ex(str(self.path / "control.sock")) == 0

    def _gone(self, pid: int, timeout_s: float = 60.0) -> bool:
        """Waits until a server has ended to its last thread: only then is its store free."""
        end = time.monotonic() + timeout_s
        while not _ended(pid):
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def _await_end(self) -> None:
        """Waits for a server that was killed a moment ago: its command line goes first, its threads and locks last."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.path / "pid").read_text())
            if not Path(f"/proc/{pid}/cmdline").read_bytes():
                self._gone(pid, 5.0)

    def crash(self) -> None:
        """Ends the server as a power cut does."""
        if (pid := self.pid()) is None:
            raise InputError(f"{self.name} is not being served")
        self.ask("crash", answered=False)
        self._gone(pid)

    def kill(self) -> None:
        """Kills the server, whether it still answers or not."""
        if (pid := self.pid()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self._gone(pid)


def _fault(said: str) -> SmrlabError:
    """What a server says is wrong, by who has to act: who asked for it, or who has the machine."""
    kind = MissingError if any(os.strerror(n) in said for n in NO_ROOM) else InputError
    return kind(said)


def _ended(pid: int) -> bool:
    """Whether a process is gone, or is nothing but a zombie that nobody waits for."""
    proc = Path(f"/proc/{pid}")
    try:
        state = (proc / "stat").read_text().rpartition(")")[2].split()[0]
        return state == "Z" and len(list((proc / "task").iterdir())) == 1
    except OSError:
        return True
