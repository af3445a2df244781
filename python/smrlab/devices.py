"""Served devices: what there is of them on disk, and what is done to it while they are served or not."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import attached, mounts, recording
from .errors import InputError, MissingError
from .listening import address, anywhere, check_tls, clear, iscsi
from .server import Say, Server
from .stores import Progress, Unmade, copy_store, delete_store, is_store

# How long clients have to leave by themselves when a server is stopped.
DRAIN_S = 5.0
# How long initiators of iSCSI have to log out, in whole seconds.
LOGOUT_S = 3
# How devices and snapshots are named.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Events of a server that died that are shown.
LAST = 5


def home() -> Path:
    """Where devices are kept: SMRLAB_STATE, or smrlab in the user's state directory."""
    if own := os.environ.get("SMRLAB_STATE"):
        return Path(own).absolute() / "devices"
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base).absolute() / "smrlab" / "devices"


def check_name(text: str, what: str) -> None:
    """Refuses what would not do as the name of a directory."""
    if not NAME.fullmatch(text):
        raise InputError(
            f"'{text}' is no {what}: up to 64 letters, digits, dots, dashes and underscores; a letter or digit first"
        )


def choice(option: str, value: str, words: tuple[str, ...]) -> str:
    """One of the words."""
    if value not in words:
        raise InputError(f"{option} {value}: accepted are {', '.join(words)}")
    return value


def folder_of(drive: str) -> str | None:
    """Where a drive's text is to be read: here, where it names a file of this folder. In states it stays as it is."""
    file = Path(drive.split(",", 1)[0])
    return str(Path.cwd()) if file.is_file() and not file.is_absolute() else None


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


def every() -> list[Device]:
    """All devices."""
    return [Device(p.parent) for p in sorted(home().glob("*/config.json"))]


def listed() -> list[dict[str, Any]]:
    """The lines of `device list`; of a device that is damaged there is its name."""
    rows = []
    for device in every():
        try:
            device.server()
            rows.append(device.summary())
        except InputError:
            rows.append({"name": device.name, "state": "damaged", "drive": "", "layer": "", "store": ""})
    return rows


class Device(Server):
    """One device: a directory with its configuration, sockets, log and (by default) store."""

    @classmethod
    def named(cls, name: str) -> Device:
        """The device of this name, which must exist."""
        device = cls(home() / name)
        # A path to one would be another name for it, by which its server would not be found.
        if not NAME.fullmatch(name) or not (device.path / "config.json").exists():
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
        _check_own_recording(config.get("record"))
        config["store"] = device._store(store)
        unmade = Unmade(Path(config["store"]["directory"])) if store and "directory" in config["store"] else None
        config["control"] = str(device.path / "control.sock")
        config["events"] = str(device.path / "events.jsonl")
        config["iscsi"] = iscsi(listen)
        try:
            device.path.mkdir(parents=True, mode=0o700)
        except OSError as e:
            text = f"{device.path} cannot be made: {e.strerror}; set SMRLAB_STATE to a folder that takes files"
            raise MissingError(text) from None
        try:
            device._write(config, {"listen": listen, "tls": tls, "folder": folder_of(config.get("drive", ""))})
            device.start()
        except BaseException:
            shutil.rmtree(device.path, ignore_errors=True)
            if unmade:
                unmade.undo()
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
        if not store:
            raise InputError("--store: it is empty: write memory, a directory or a block device")
        path = Path(store).absolute()
        if path.is_block_device():
            return {"device": {"device": str(path), "state": str(self.path / "store")}}
        at = path.resolve()
        if at.is_relative_to(home().resolve()):
            raise InputError(f"--store {store}: lies where devices themselves are kept: name a directory elsewhere")
        # Who deletes a store deletes those within it.
        if outer := next((p for p in at.parents if is_store(p)), None):
            raise InputError(f"--store {store}: lies within the store {outer}: name a directory elsewhere")
        return {"directory": str(path)}

    def store(self) -> Path | None:
        """The directory of the store; none for memory."""
        kind = self.config()["store"]
        return None if kind == "memory" else Path(kind.get("directory") or kind["device"]["state"])

    def place(self) -> str:
        """Where its bytes are, for people."""
        kind = self.config()["store"]
        return kind if isinstance(kind, str) else str(kind.get("directory") or kind["device"]["device"])

    def summary(self) -> dict[str, Any]:
        """One line of `device list`."""
        config = self.config()
        state = "serving" if self.running() else "died" if self.died() else "stopped"
        array = {"array": config["array"]} if config.get("array") else {}
        return {"name": self.name, "state": state, **{k: config[k] for k in ("drive", "layer", "store")}, **array}

    def start(self, say: Say = lambda _: None) -> None:
        """Starts the server, waits until it answers, and gives it the block device that a dead one left."""
        super().start(say)
        attached.take_over(self)

    def stop(self, *, force: bool = False, say: Say = lambda _: None) -> None:
        """Ends the server in good order.

        Connected clients of NBD have a few seconds to leave; then, or at once with `force`, what they sent is answered
        and their connections are closed. Initiators of iSCSI are asked to log out, and have a few seconds, too.
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
        if self.iscsi():
            closed = self.ask("logout", seconds=0 if force else LOGOUT_S)["closed"]
            if closed and not force:
                say(f"{self.name}: iSCSI sessions that did not end in {LOGOUT_S} s, and were closed: {closed}")
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

    def remove(self, *, delete_own: bool = False, force: bool = False, say: Say = lambda _: None) -> Path | None:
        """Ends the server and deletes what was made under the state directory; the store that is kept, if there is one.

        A store elsewhere is the user's: it is deleted only with `delete_own`, and nothing else in its directory is.
        """
        with self.alone():
            left = self._left_mounts()
            for at in left:
                mounts.check_unused(at)
            if self.running():
                self.stop(force=force, say=say)
            elif held := attached.left(self):
                raise InputError(f"{held} waits for the server that died: smrlab device start {self.name} first")
            for at in left:
                mounts.clear(at)
            store, kept = None, None
            # Of one that is damaged nobody knows where else its store is: that stays.
            with contextlib.suppress(InputError):
                store = self.store()
            if store is not None and (store / "header").exists() and not store.is_relative_to(self.path):
                if delete_own:
                    delete_store(store)
                else:
                    kept = store
            # A socket that its server left elsewhere; one at which somebody else listens now is that one's.
            with contextlib.suppress(InputError):
                clear(self.socket())
            with contextlib.suppress(InputError):
                recording.sweep(self.config().get("record"))
            shutil.rmtree(self.path)
        return kept

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
            remedy = "choose another one" if at.exists() else f"mkdir {directory}"
            raise InputError(f"{directory} is not a directory: {remedy}")
        mounts.note(self.path, at)
        file = Path(self.ask("mount", dir=str(at))["file"])
        return file, mounts.add_loop(file, self.config().get("block", 512))

    def _left_mounts(self) -> list[Path]:
        """Where a server of it that is gone left it mounted; it may have been started again meanwhile."""
        return [at for at in dict.fromkeys(mounts.noted(self.path)) if not mounts.is_alive(at)]

    def mounted_at(self) -> Path:
        """The one directory where it is mounted; that of a server that died, too."""
        held = [Path(directory) for directory in self.ask("mounts")] if self.running() else []
        held += [at for at in self._left_mounts() if at not in held]
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


def _check_own_recording(record: str | None) -> None:
    """Refuses the file into which another device records: of two that end in one file the last would be left."""
    for other in every() if record else ():
        theirs = None
        with contextlib.suppress(InputError):
            theirs = other.config().get("record")
        if record and theirs and Path(theirs).resolve() == Path(record).resolve():
            raise InputError(f"--record {record}: {other.name} records there: name another file")


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
        # Hosts reserved the other disk.
        (made.path / "store" / "reservations").unlink(missing_ok=True)
        config = device.config() | {"name": name, "store": {"directory": str(made.path / "store")}}
        config |= {"control": str(made.path / "control.sock"), "events": str(made.path / "events.jsonl")}
        config |= {"record": None, "iscsi": None, "chap": None}
        made._write(config, {"listen": None, "tls": {}, "folder": device.server().get("folder")})
        made.start()
    except BaseException:
        shutil.rmtree(made.path, ignore_errors=True)
        raise
    return made
