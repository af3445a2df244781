"""`smrlab device attach` and `detach`: a served device as a block device of the kernel."""

from __future__ import annotations

from .. import attached
from ..devices import Device
from . import console
from . import options as o


def attach(name: o.DeviceName, as_json: o.JsonOption = False) -> None:
    """Attach."""
    path = attached.attach(Device.named(name))
    if as_json:
        console.print_json({"path": path})
    else:
        console.out().print(f"{path}\nWhat to type next:\n  lsblk -z {path}", soft_wrap=True, highlight=False)


def detach(name: o.DeviceName) -> None:
    """Detach."""
    attached.detach(Device.named(name))
