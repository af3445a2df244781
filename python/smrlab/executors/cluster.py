"""A Dask cluster: on other machines, under Slurm, PBS or Kubernetes, wherever its own packages put it.

Dask schedules. What is large (a trace as columns, a prefilled drive) is a task of its own, whose value is a small
handle that weighs what the thing weighs: so the scheduler places runs where it is, or moves it where that is quicker.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from .. import _core
from ..errors import InputError, MissingError
from ..files import read_text
from ..kept import Choice
from ..urls import EXTRA
from .contract import PERIOD_S, Each, ExecutorLost, Failed, Input, Piece, Running, Tick, control
from .memory import Room

# Pieces that the scheduler is given at a time, at least, and for each thread of a worker.
WINDOW, WINDOW_A_THREAD = 400, 4
# How often a run that takes long tells how far it is, in seconds.
TOLD_S = 2.0
# How often a piece is tried whose workers died under it: each time Dask itself has tried it on several.
ATTEMPTS = 3
# How long a scheduler that is gone is waited for, in seconds.
BACK_S = 60.0

# In a worker: what is under way for each client's call, so that it can be cancelled, and what memory it takes.
_running: dict[str, set[_core.Control]] = {}
_room = Room()


class Handle:
    """A large thing on a worker's disk; Dask takes its weight for what it costs to move."""

    def __init__(self, thing: Input, weight: int) -> None:
        self.thing, self.weight = thing, weight

    def __sizeof__(self) -> int:
        return max(self.weight, 64)


def prepare(thing: Input) -> Handle | Failed:
    """On a worker: makes a large thing, and gives the handle of it."""
    try:
        return Handle(thing, int(getattr(thing.here(), "bytes", 0)))
    except Exception as error:
        return Failed(error)


@dataclass(frozen=True)
class _Order:
    """What a worker needs to do a piece; its text shows in logs and has nothing of the specification."""

    piece: Piece[Any]
    call: str
    prefills: Choice
    # Who asks has this one.
    engine: str

    def __repr__(self) -> str:
        return f"run of {self.piece.name}"


def perform(order: _Order, number: int, *_: Handle) -> Any:
    """On a worker: does a piece, within the memory there is; its value, or what it raised."""
    from distributed import get_worker

    worker = get_worker()
    mine = about()[0]
    if mine != order.engine:
        return Failed(MissingError(another(worker.address, mine, order.engine)))
    limit = getattr(getattr(worker, "memory_manager", None), "memory_limit", None) or 0
    need = order.piece.memory
    if limit and need > limit:
        return Failed(InputError(too_large(need, limit)))
    watched = control(order.piece, order.prefills)
    ended = threading.Event()
    with _room.taken(need, limit):
        _running.setdefault(order.call, set()).add(watched)
        teller = threading.Thread(target=_tell, args=(worker, order, number, watched, ended), daemon=True)
        teller.start()
        try:
            return order.piece.work(watched)
        except BaseException as error:
            return Failed(_plain(error))
        finally:
            ended.set()
            _running.get(order.call, set()).discard(watched)


def another(worker: str, there: str, here: str) -> str:
    """Why a worker is refused that would answer otherwise."""
    return f"worker {worker} has another engine (smrlab {there}, here {here}): install the same there"


def too_large(need: int, limit: int) -> str:
    """Why a run is refused that needs more memory than a worker has."""
    return (
        f"needs {need / 2**30:.1f} GiB of memory by estimate, its worker has {limit / 2**30:.1f} GiB: start workers "
        'with more (dask worker --memory-limit), or say memory = "1GiB" in the sweep where you know better'
    )


def _plain(error: BaseException) -> BaseException:
    """The error itself where another process can read it, else what it says: a panic cannot be pickled."""
    import pickle

    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")


def _tell(worker: Any, order: _Order, number: int, watched: _core.Control, ended: threading.Event) -> None:
    while not ended.wait(TOLD_S):
        with suppress(Exception):
            worker.log_event(order.call, (number, watched.share(), watched.prefills()))


def cancel(call: str) -> None:
    """On a worker: stops what is under way for a call."""
    for watched in list(_running.get(call, ())):
        watched.cancel()


def about() -> tuple[str, str]:
    """On a worker: which engine it has, and its host."""
    from ..sweeps.identity import fingerprint

    return fingerprint(), socket.gethostname()


class Cluster:
    """The workers of a Dask scheduler."""

    remote = True

    def __init__(self, client: Any) -> None:
        self.client = client
        self.owner = ""
        self._greet()

    def _greet(self) -> None:
        """Refuses workers that would answer otherwise than this machine."""
        from ..sweeps.identity import fingerprint

        self.owner = f"dask-{self.client.scheduler_info(n_workers=0)['id']}"
        mine = fingerprint()
        for name, told in self.client.run(about, on_error="return").items():
            if isinstance(told, OSError):
                # It died meanwhile; others will come.
                continue
            if isinstance(told, BaseException):
                raise MissingError(f"worker {name} has no smrlab that this one can talk to ({told}): {EXTRA} there")
            if told[0] != mine:
                raise MissingError(another(name, told[0], mine))

    def run(self, pieces: Sequence[Piece[Any]], each: Each, tick: Tick | None = None, prefills: Choice = True) -> bool:
        """See `Executor.run`. Raises ExecutorLost when the scheduler is gone."""
        call = _Call(self.client, pieces, prefills)
        try:
            call.run(each, tick)
        except KeyboardInterrupt:
            call.stop()
            return True
        except BaseException:
            call.stop()
            raise
        finally:
            call.close()
        return False

    def back(self) -> None:
        """Waits for the scheduler to come back at its address. Raises ExecutorLost when it does not."""
        address = self.client.scheduler.address if self.client.scheduler else self.client._start_arg
        security = self.client.security
        end = time.monotonic() + BACK_S
        with suppress(Exception):
            self.client.close(timeout=1)
        while time.monotonic() < end:
            try:
                self.client = _reached(5, address=address, security=security)
                self.client.wait_for_workers(1, timeout=max(end - time.monotonic(), 1))
                self._greet()
            except (OSError, TimeoutError):
                time.sleep(0.5)
            else:
                return
        raise ExecutorLost(f"the scheduler at {address} is gone, and did not come back within {BACK_S:.0f} s")


class _Call:
    """The pieces of one call of `Cluster.run`."""

    def __init__(self, client: Any, pieces: Sequence[Piece[Any]], prefills: Choice) -> None:
        self.client, self.pieces, self.prefills, self.engine = client, pieces, prefills, about()[0]
        self.id = f"smrlab-{uuid.uuid4().hex}"
        self.ended: SimpleQueue[int] = SimpleQueue()
        self.futures: dict[int, Any] = {}
        self.handles: dict[str, Any] = {}
        self.users: dict[str, int] = {}
        self.attempts: dict[int, int] = {}
        self.shares: dict[int, Running] = {}
        for piece in pieces:
            for thing in piece.inputs:
                self.users[thing.key] = self.users.get(thing.key, 0) + 1
        threads = sum(client.nthreads().values())
        self.window = max(WINDOW, WINDOW_A_THREAD * threads)
        client.subscribe_topic(self.id, self._heard)

    def _is_connected(self) -> bool:
        return self.client.status in ("running", "newly-created")

    def _heard(self, event: Any) -> None:
        number, share, prefills = event[1]
        self.shares[number] = Running(number, share, prefills)

    def run(self, each: Each, tick: Tick | None) -> None:
        todo = iter(range(len(self.pieces)))
        left = len(self.pieces)
        while left:
            for number in todo:
                self._submit(number)
                if len(self.futures) >= self.window:
                    break
            for number, value in self._finished():
                left -= 1
                self._free(number)
                each(number, value)
            if tick:
                tick([self.shares[n] for n in sorted(self.shares) if n in self.futures])

    def _submit(self, number: int) -> None:
        piece = self.pieces[number]
        attempt = self.attempts.setdefault(number, 0)
        handles = [self._handle(thing) for thing in piece.inputs]
        key = f"{piece.key or f'{piece.name}-{self.id}-{number}'}-{attempt}"
        order = _Order(piece, self.id, self.prefills, self.engine)
        future = self.client.submit(perform, order, number, *handles, key=key, pure=False)
        self.futures[number] = future
        future.add_done_callback(lambda _, n=number: self.ended.put(n))

    def _handle(self, thing: Input) -> Any:
        if thing.key not in self.handles:
            self.handles[thing.key] = self.client.submit(prepare, thing, key=f"input-{thing.key}", pure=False)
        return self.handles[thing.key]

    def _free(self, number: int) -> None:
        """Lets go of what nobody needs any more."""
        del self.futures[number]
        self.shares.pop(number, None)
        for thing in self.pieces[number].inputs:
            self.users[thing.key] -= 1
            if self.users[thing.key] == 0:
                self.handles.pop(thing.key, None)

    def _finished(self) -> Iterator[tuple[int, Any]]:
        """What has ended since, after waiting a moment for the first."""
        numbers = []
        with suppress(Empty):
            numbers.append(self.ended.get(timeout=PERIOD_S))
            while True:
                numbers.append(self.ended.get_nowait())
        if not numbers and not self._is_connected():
            raise ExecutorLost("the connection to the scheduler is lost")
        whole = []
        for number in numbers:
            future = self.futures[number]
            if future.status == "finished":
                whole.append(number)
            elif future.status == "error":
                yield from self._again(number, future)
            else:
                raise ExecutorLost("the scheduler has lost what it was given")
        yield from zip(whole, self._values(whole), strict=True)

    def _values(self, numbers: list[int]) -> list[Any]:
        if not numbers:
            return []
        try:
            return list(self.client.gather([self.futures[n] for n in numbers]))
        except Exception as error:
            raise ExecutorLost(f"results were lost on their way: {type(error).__name__}") from None

    def _again(self, number: int, future: Any) -> Iterator[tuple[int, Any]]:
        """Tries a piece again whose workers died, until that is no accident."""
        error = future.exception()
        self.attempts[number] += 1
        if type(error).__name__ != "KilledWorker" or self.attempts[number] >= ATTEMPTS:
            reason = f"{type(error).__name__}: {error}"
            if type(error).__name__ == "KilledWorker":
                reason = "its workers died under it, again and again: it takes more memory than they have, or crashes"
            yield number, Failed(RuntimeError(reason))
        else:
            self._submit(number)

    def stop(self) -> None:
        """Cancels what is not done."""
        # Whoever asks a scheduler that is gone waits for it.
        if not self._is_connected():
            return
        with suppress(Exception):
            self.client.cancel(list(self.futures.values()))
            self.client.run(cancel, self.id, on_error="ignore")

    def close(self) -> None:
        """Lets go of everything."""
        with suppress(Exception):
            self.client.unsubscribe_topic(self.id)
        self.futures.clear()
        self.handles.clear()


def _has_address(file: Path) -> bool:
    """Whether a file is that of a scheduler."""
    try:
        return isinstance(json.loads(read_text(file))["address"], str)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _reached(seconds: float, **to: Any) -> Any:
    """A client of a scheduler. Raises what Dask raises, and TimeoutError where another protocol is spoken there."""
    from distributed import Client

    class Patient(Client):  # type: ignore[misc]
        async def _ensure_connected(self, timeout: Any = None) -> None:
            # Dask itself waits for ever for the first word of what takes a connection and says nothing.
            try:
                await asyncio.wait_for(super()._ensure_connected(timeout), 1.5 * seconds)
            except TimeoutError as fault:
                silent = "what listens there does not speak Dask's protocol; its dashboard has another port"
                raise TimeoutError(str(fault) or silent) from None

    return Patient(**to, timeout=seconds, name="smrlab")


@contextmanager
def connected(scheduler: str, jobs: int | None = None, client: Any = None) -> Iterator[Cluster]:
    """The cluster of a `distributed.Client`, or of a scheduler: an address, a scheduler file, or `slurm`."""
    if client is not None:
        yield Cluster(client)
        return
    try:
        import distributed
    except ImportError:
        raise MissingError(f"--scheduler {scheduler}: Dask is not installed: {EXTRA}") from None
    if scheduler == "slurm":
        with _slurm(jobs) as made, distributed.Client(made, name="smrlab") as client:
            client.wait_for_workers(1)
            yield Cluster(client)
        return
    to = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
    try:
        client = _reached(float(os.environ.get("SMRLAB_CONNECT_S", "20")), **to)
    except Exception as fault:
        # Dask has many kinds: what is no address, wants TLS, or is another version.
        if "scheduler_file" in to and not _has_address(Path(scheduler)):
            how = "`dask scheduler --scheduler-file FILE` writes one"
            raise InputError(f"--scheduler {scheduler}: no file of a Dask scheduler: {how}") from None
        raise MissingError(
            f"--scheduler {scheduler}: no Dask scheduler answers there ({fault}); start one: dask scheduler"
        ) from None
    cluster = None
    try:
        if not client.nthreads():
            client.wait_for_workers(1, timeout=BACK_S)
        cluster = Cluster(client)
        yield cluster
    except TimeoutError:
        raise MissingError(f"--scheduler {scheduler}: it has no workers; start one: dask worker {scheduler}") from None
    finally:
        with suppress(Exception):
            (cluster.client if cluster else client).close(timeout=2)


@contextmanager
def _slurm(jobs: int | None) -> Iterator[Any]:
    """Jobs of Slurm, with what the user's own Dask configuration says of queue, cores, memory and time."""
    import shutil
    import signal

    ctrl_c = signal.getsignal(signal.SIGINT)
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise MissingError(f"--scheduler slurm: dask-jobqueue is not installed: {EXTRA}") from None
    finally:
        # Where it is loaded it takes Ctrl-C for itself: a study would end without a word, with status 0.
        signal.signal(signal.SIGINT, ctrl_c)
    if shutil.which("sbatch") is None:
        raise MissingError("--scheduler slurm: there is no sbatch here: start it on a machine that can submit jobs")
    try:
        cluster = SLURMCluster()
    except (TypeError, ValueError) as fault:
        raise InputError(
            f"--scheduler slurm: {fault}; say in ~/.config/dask/jobqueue.yaml what a job is to get (docs/studies.md)"
        ) from None
    with cluster:
        cluster.scale(jobs=jobs or 4)
        yield cluster
