"""Served devices: their state on disk, their server, and the control socket."""

from __future__ import annotations

import contextlib
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

from . import attached, mounts, recording
from .errors import InputError, MissingError
from .listening import SOCKET_PATH, address, anywhere, check_tls, clear, iscsi
from .stores import Progress, copy_store, delete_store

START_S = 20.0
# How long clients have to leave by themselves when a server is stopped.
DRAIN_S = 5.0
# Events of a server that died that are shown.
LAST = 5
Say = Callable[[str], None]


def home() -> Path:
    """Where devices are kept: SMRLAB_STATE, or smrlab in the user's state directory."""
    if own := os.environ.get("SMRLAB_STATE"):
        return Path(own).absolute() / "devices"
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base).absolute() / "smrlab" / "devices"


def check_name(text: str, what: str) -> None:
    """Refuses what would not do as the name of a directory."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text):
        raise InputError(
            f"'{text}' is no {what}: up to 64 letters, digits, dots, dashes and underscores; a letter or digit first"
        )


def choice(option: str, value: str, words: tuple[str, ...]) -> str:
    """One of the words."""
    if value not in words:
        raise InputError(f"{option} {value}: accepted are {', '.join(words)}")
    return value


def flat(doc: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Names with dots and values of a nested document; lists of documents are numbered from 0."""
    for key, value in doc.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            for i, one in enumerate(value):
                yield from flat(one, f"{prefix}{key}.{i}.")
        else:
            yield f"{prefix}{key}", value


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


def every() -> list[Device]:
    """All devices."""
    return [Device(p.parent) for p in sorted(home().glob("*/config.json"))]


class Device:
    """One device: a directory with its configuration, sockets, log and (by default) store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name

    @classmethod
    def named(cls, name: str) -> Device:
        """The device of this name, which must exist."""
        device = cls(home() / name)
        if not (device.path / "config.json").exists():
            known = ", ".join(d.name for d in every()) or "none yet (smrlab device create)"
            raise InputError(f"there is no device '{name}'; there are: {known}")
        return device

    @classmethod
    def create(
        cls, name: str, config: dict[str, Any], store: str | None, listen: str | None, tls: dict[str, str]
    ) -> Device:
        """Makes a device and starts it; nothing remains of it when that fails."""
        check_name(name, "name for a device")
        device = cls(home() / name)
        if device.path.exists():
            raise InputError(f"there is a device '{name}' already: choose another name, or smrlab device remove {name}")
        address(listen)
        check_tls(listen, tls)
        listen = anywhere(listen)
        recording.refuse(config.get("record"))
        config["store"] = device._store(store)
        config["control"] = str(device.path / "control.sock")
        config["events"] = str(device.path / "events.jsonl")
        config["iscsi"] = iscsi(listen)
        device.path.mkdir(parents=True, mode=0o700)
        try:
            device._write(config, {"listen": listen, "tls": tls})
            device.start()
        except BaseException:
            shutil.rmtree(device.path, ignore_errors=True)
            raise
        return device

    def _write(self, config: dict[str, Any], server: dict[str, Any]) -> None:
        for name, doc in (("config.json", config), ("server.json", server)):
            (self.path / name).write_text(json.dumps(doc, indent=1) + "\n")

    def _store(self, store: str | None) -> Any:
        if store == "memory":
            return "memory"
        if store is None:
            return {"directory": str(self.path / "store")}
        path = Path(store).absolute()
        if path.is_block_device():
            return {"device": {"device": str(path), "state": str(self.path / "store")}}
        return {"directory": str(path)}

    def config(self) -> dict[str, Any]:
        """What the server is given."""
        doc: dict[str, Any] = json.loads((self.path / "config.json").read_text())
        return doc

    def server(self) -> dict[str, Any]:
        """How it is served."""
        doc: dict[str, Any] = json.loads((self.path / "server.json").read_text())
        return doc

    def store(self) -> Path | None:
        """The directory of the store; none for memory."""
        kind = self.config()["store"]
        return None if kind == "memory" else Path(kind.get("directory") or kind["device"]["state"])

    def place(self) -> str:
        """Where its bytes are, for people."""
        kind = self.config()["store"]
        return kind if isinstance(kind, str) else str(kind.get("directory") or kind["device"]["device"])

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

    def summary(self) -> dict[str, Any]:
        """One line of `device list`."""
        config = self.config()
        state = "serving" if self.running() else "died" if self.died() else "stopped"
        array = {"array": config["array"]} if config.get("array") else {}
        return {"name": self.name, "state": state, **{k: config[k] for k in ("drive", "layer", "store")}, **array}

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

    def clients(self) -> list[str]:
        """Who is connected by NBD, in words."""
        if not self.running():
            return []
        told = {c["peer"]: c for c in self.ask("clients")}
        return [f"{c['name']} (pid {c['pid']})" if c.get("pid") else c["address"] for c in told.values()]

    def start(self, say: Say = lambda _: None) -> None:
        """Starts the server and waits until it answers."""
        if self.running():
            raise InputError(f"{self.name} is being served already")
        if shutil.which("nbdkit") is None:
            raise MissingError("nbdkit is missing; all that devices use: sudo apt-get install nbdkit fuse3 libnbd-bin")
        if len(os.fsencode(self.path / "control.sock")) >= SOCKET_PATH:
            raise InputError(f"{self.path} is too long for a socket: set SMRLAB_STATE to a shorter directory")
        self._await_end()
        clear(self.socket())
        for old in (self.path / "pid", self.path / "control.sock"):
            old.unlink(missing_ok=True)
        if earlier := recording.put_aside(self.config().get("record")):
            say(f"{self.name}: what clients did until now is in {earlier}")
        log = (self.path / "log").open("ab")
        before = log.tell()
        with log:
            server = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, umask=0o077
            )
        try:
            self._await(server, before)
        except BaseException:
            (self.path / "control.sock").unlink(missing_ok=True)
            raise
        attached.take_over(self)

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
                raise InputError(f"{self.name} could not be served: {message or 'the server ended'}")
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

    def stop(self, *, force: bool = False, say: Say = lambda _: None) -> None:
        """Ends the server in good order.

        Connected clients have a few seconds to leave; then, or at once with `force`, what they sent is answered and
        their connections are closed.
        """
        if (pid := self.pid()) is None:
            raise InputError(f"{self.name} is not being served")
        held = [Path(directory) for directory in self.ask("mounts")]
        for directory in held:
            mounts.check_unused(directory)
        if self.ask("attached"):
            attached.detach(self)
        for directory in held:
            self.unmount(directory)
        clients = self.clients()
        os.kill(pid, signal.SIGTERM)
        if clients and not force:
            say(f"{self.name}: connected: {', '.join(clients)}; closed in {DRAIN_S:.0f} s (--force: at once)")
        if not (clients and force) and self._gone(pid, DRAIN_S):
            return
        with contextlib.suppress(OSError, InputError, MissingError):
            self.ask("disconnect")
        if not self._gone(pid):
            raise MissingError(f"{self.name} does not stop: smrlab device crash {self.name}; see {self.path / 'log'}")

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

    def remove(self, *, delete_own: bool = False, force: bool = False, say: Say = lambda _: None) -> Path | None:
        """Ends the server and deletes what was made under the state directory; the store that is kept, if there is one.

        A store elsewhere is the user's: it is deleted only with `delete_own`, and nothing else in its directory is.
        """
        if self.running():
            self.stop(force=force, say=say)
        store, kept = self.store(), None
        if store is not None and (store / "header").exists() and not store.is_relative_to(self.path):
            if delete_own:
                delete_store(store)
            else:
                kept = store
        # A socket that its server left elsewhere; one at which somebody else listens now is that one's.
        with contextlib.suppress(InputError):
            clear(self.socket())
        shutil.rmtree(self.path)
        return kept

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
            raise InputError(f"{self.name}: {doc['error']}")
        return doc["ok"]

    def mount(self, directory: Path) -> tuple[Path, str | None]:
        """Serves it as a file in `directory`; gives that and, where one can be had, a loop device on it."""
        at = directory.resolve()
        live = self.ask("mounts")
        if str(at) in live:
            raise InputError(
                f"{directory} is a mount of {self.name} already: smrlab device unmount {self.name} {directory}"
            )
        if mounts.is_mount(at):
            if mounts.is_alive(at):
                raise InputError(f"another device is mounted at {directory}")
            mounts.clear(at)
        if not at.is_dir():
            raise InputError(f"{directory} is not a directory: mkdir {directory}")
        mounts.note(self.path, at)
        file = Path(self.ask("mount", dir=str(at))["file"])
        return file, mounts.add_loop(file, self.config().get("block", 512))

    def mounted_at(self) -> Path:
        """The one directory where it is mounted; that of a server that died, too."""
        if self.running():
            held = [Path(directory) for directory in self.ask("mounts")]
        else:
            held = [at for at in mounts.noted(self.path) if not mounts.is_alive(at)]
        if not held:
            raise InputError(f"{self.name} is not mounted: smrlab device mount {self.name} DIR")
        if len(held) > 1:
            raise InputError(f"{self.name} is mounted at {', '.join(map(str, held))}: name one of them")
        return held[0]

    def unmount(self, directory: Path) -> None:
        """Undoes `mount`, also that of a server that is gone."""
        at = directory.resolve()
        if not self.running() or str(at) not in self.ask("mounts"):
            if not mounts.is_mount(at):
                raise InputError(f"{directory} is not a mount of {self.name}")
            mounts.clear(at)
            return
        mounts.check_unused(at)
        mounts.remove_loops(at)
        self.ask("unmount", dir=str(at))

    def _in_files(self) -> Path:
        """The store's directory, which holds all there is of it."""
        kind = self.config()["store"]
        if not isinstance(kind, dict) or "directory" not in kind:
            where = "memory" if kind == "memory" else kind["device"]["device"]
            raise InputError(f"{self.name} has its bytes in {where}: snapshots and clones need a store in files")
        return Path(kind["directory"])

    def snapshot(self, label: str, progress: Progress | None = None) -> Path:
        """Copies the store as it is now; shares blocks where the file system can."""
        store = self._in_files()
        check_name(label, "label for a snapshot")
        target = self.path / "snapshots" / label
        if target.exists():
            raise InputError(f"{self.name} has a snapshot '{label}' already: choose another label")
        target.parent.mkdir(exist_ok=True)
        served = self.running()
        if served and (held := self.ask("mounts")):
            raise InputError(f"{self.name} is mounted at {held[0]}: smrlab device unmount {self.name} {held[0]} first")
        if served and (held := self.ask("attached")):
            raise InputError(f"{self.name} is attached as {held['path']}: smrlab device detach {self.name} first")
        if who := ", ".join(self.clients()):
            raise InputError(f"{self.name} is used by {who}: end that first, or smrlab device stop {self.name}")
        if served:
            self.stop()
        try:
            copy_store(store, target, progress)
        finally:
            if served:
                self.start()
        return target


def _ended(pid: int) -> bool:
    """Whether a process is gone, or is nothing but a zombie that nobody waits for."""
    proc = Path(f"/proc/{pid}")
    try:
        state = (proc / "stat").read_text().rpartition(")")[2].split()[0]
        return state == "Z" and len(list((proc / "task").iterdir())) == 1
    except OSError:
        return True


def clone(source: str, name: str, progress: Progress | None = None) -> Device:
    """A new device with the state of one or of a snapshot (NAME@LABEL), without iSCSI; nothing stays if that fails."""
    check_name(name, "name for a device")
    origin, _, label = source.partition("@")
    device = Device.named(origin)
    state = device._in_files()
    if label:
        check_name(label, "label of a snapshot")
        state = device.path / "snapshots" / label
        if not state.exists():
            raise InputError(f"{origin} has no snapshot '{label}': smrlab device snapshot {origin} {label}")
    elif device.running():
        raise InputError(f"{origin} is being served: stop it first, or clone a snapshot ({origin}@LABEL)")
    made = Device(home() / name)
    if made.path.exists():
        raise InputError(f"there is a device '{name}' already")
    made.path.mkdir(mode=0o700)
    try:
        copy_store(state, made.path / "store", progress)
        config = device.config() | {"name": name, "store": {"directory": str(made.path / "store")}}
        config |= {"control": str(made.path / "control.sock"), "events": str(made.path / "events.jsonl")}
        config |= {"record": None, "iscsi": None, "chap": None}
        made._write(config, {"listen": None, "tls": {}})
        made.start()
    except BaseException:
        shutil.rmtree(made.path, ignore_errors=True)
        raise
    return made
