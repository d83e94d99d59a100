"""The devices that were found, and the versions that a report of a problem should name."""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from kernelpath import _core


@dataclass(frozen=True)
class Device:
    """A device that was found; `problem` says why it cannot be used, or is None."""

    name: str
    """What ``device=`` takes."""
    description: str
    driver: str
    memory: int
    """Bytes."""
    float64: bool
    is_processor: bool
    problem: str | None

    def __str__(self) -> str:
        kind = "a processor" if self.is_processor else "a GPU"
        digits = "double precision" if self.float64 else "no double precision"
        state = f"not usable: {self.problem}" if self.problem else f"{self.memory / 2**30:.1f} GiB, {digits}, {kind}"
        return f"{self.name:10} {self.description}: {state}"


def devices() -> list[Device]:
    """
    List the devices that ``device=`` may name, with their memory and why some of them are not usable.

    The processor comes first. A kind of device for which there is no driver is listed, too, with the reason.

    Returns
    -------
    list of Device
        With the attributes `name` (what ``device=`` takes), `description`, `driver`, `memory` in bytes, `float64`,
        `is_processor` (whether an OpenCL device is a processor: "auto" never takes one) and `problem` (None if the
        device can be used).

    Examples
    --------
    >>> import kernelpath
    >>> kernelpath.devices()[0].name
    'cpu'
    """
    return [Device(**found) for found in _core.devices()]


def show_versions() -> None:
    """
    Print versions, cores, memory and devices, for a report of a problem.

    Examples
    --------
    >>> import kernelpath
    >>> kernelpath.show_versions()  # doctest: +ELLIPSIS
    kernelpath ...
    """
    memory = _core.available_memory()
    print(f"kernelpath {_core.__version__}")
    print(f"python     {sys.version.split()[0]} on {platform.platform()}")
    for package in ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib"):
        try:
            print(f"{package:10} {version(package)}")
        except PackageNotFoundError:
            continue
    print(f"threads    {_core.count_threads(0)} of {os.cpu_count()} cores")
    if memory is not None:
        print(f"memory     {memory / 2**30:.1f} GiB may still be taken")
    print("devices")
    for device in devices():
        print(f"  {device}")
