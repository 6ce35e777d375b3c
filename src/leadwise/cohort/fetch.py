"""Download PTB-XL: resumable, in parallel, every file checked against the publisher's checksums."""

import errno
import hashlib
import os
import re
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from queue import Empty, SimpleQueue
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import quote

from leadwise.errors import FetchError
from leadwise.progress import progress
from leadwise.store import atomic_file, file_sha256

if TYPE_CHECKING:  # requests costs 0.1 s to import; only a download needs it
    from requests import Session

PTBXL_URL = "https://physionet.org/files/ptb-xl/1.0.3/"
CHECKSUM_LIST = "SHA256SUMS.txt"
TABLES = ("ptbxl_database.csv", "scp_statements.csv", "LICENSE.txt")
RECORDS = "records100/"

RETRY_WAITS: tuple[float, ...] = (0.5, 1, 2, 4, 8, 16)
"""Seconds to wait after each attempt in a row that brought a file no further; after the last, we give up."""
TIMEOUT: float = 20
"""Seconds without a byte after which a connection counts as cut; also the longest that stopping can take."""
CHUNK_BYTES = 4096
"""A cut loses up to one chunk of what had arrived, and a record has only 24 kB."""

AGAIN = "run the same command again to continue"


def fetch_ptbxl(directory: str | Path, source: str = PTBXL_URL, connections: int = 8) -> int:
    """Download the 100 Hz part of PTB-XL v1.0.3 (about 43,600 files, 0.5 GB) into ``directory``.

    A file appears under its own name only once it is whole and its checksum right. Calling again fetches only what is
    missing, and continues partial files (``NAME.part``). The checksum list itself is always fetched, and kept.

    Returns how many files were downloaded, the list not counted. After a `FetchError` what is done is kept.
    """
    directory, address = Path(directory), source.rstrip("/") + "/"
    stop = Event()
    list_file = directory / CHECKSUM_LIST
    with _session() as session, _disk_trouble_explained(list_file), atomic_file(list_file) as draft:
        _download(session, address + CHECKSUM_LIST, draft, stop)
        digests = _needed_files(draft.read_bytes(), address + CHECKSUM_LIST)

    waiting: SimpleQueue[str] = SimpleQueue()
    for path in digests:
        waiting.put(path)

    with progress("Fetching PTB-XL", len(digests)) as advance, ThreadPoolExecutor(connections) as pool:

        def work() -> int:
            fetched = 0
            with _session() as session, suppress(Empty):
                while not stop.is_set():
                    path = waiting.get_nowait()
                    fetched += _fetch_file(session, address + quote(path), directory / path, digests[path], stop)
                    advance(1)
            return fetched

        try:
            return sum(worker.result() for worker in as_completed([pool.submit(work) for _ in range(connections)]))
        finally:  # an error or Ctrl-C: leaving the pool waits for its threads, which would go on for 40,000 files
            stop.set()


def _session() -> "Session":
    import requests

    session = requests.Session()
    # compressed answers would make byte ranges mean something else than bytes of the file
    session.headers.update({"User-Agent": f"leadwise/{version('leadwise')}", "Accept-Encoding": "identity"})
    return session


def _needed_files(checksum_list: bytes, url: str) -> dict[str, str]:
    """The path and SHA-256 of every file to fetch, tables first, from the publisher's ``<sha256> <path>`` lines."""
    digests = {}
    for number, line in enumerate(checksum_list.decode(errors="replace").splitlines(), start=1):
        match = re.fullmatch(r"([0-9a-fA-F]{64}) [ *]?([^\0]+)", line)
        if match is None:
            raise FetchError(
                f"{url} is not a list of SHA-256 checksums (line {number} is {line[:40]!r}): check the source address."
            )
        path = PurePosixPath(match[2])
        if path.is_absolute() or ".." in path.parts:
            raise FetchError(
                f"{url} lists {match[2]!r}, which lies outside the download directory: use another source address."
            )
        digests[str(path)] = match[1].lower()
    needed = [*TABLES, *(path for path in digests if path.startswith(RECORDS))]
    missing = [*(path for path in TABLES if path not in digests), *([RECORDS] if len(needed) == len(TABLES) else [])]
    if missing:
        raise FetchError(f"{url} does not list {', '.join(missing)}: check that the source address is PTB-XL's.")
    return {path: digests[path] for path in needed}


def _fetch_file(session: "Session", url: str, target: Path, digest: str, stop: Event) -> bool:
    """Make ``target`` the file that has this SHA-256; says whether it had to be downloaded."""
    with _disk_trouble_explained(target):
        if target.is_file():
            if file_sha256(target) == digest:
                return False
            target.unlink()  # whatever happens next, nothing wrong stands under the final name
        part = target.with_name(target.name + ".part")
        part.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(2):  # a wrong part may be an old one badly continued: a fresh one gets its chance
            _download(session, url, part, stop)
            with part.open("rb") as file:
                os.fsync(file.fileno())
                got = hashlib.file_digest(file, "sha256").hexdigest()
            if got == digest:
                part.replace(target)
                return True
            part.unlink()
    raise FetchError(
        f"{url} arrived with the wrong content twice (SHA-256 {got[:12]}…, listed is {digest[:12]}…): {AGAIN}, "
        "or use another source address."
    )


def _download(session: "Session", url: str, part: Path, stop: Event) -> None:
    """Bring ``part`` to its full length, continuing from what it holds, and trying again for as long as that helps."""
    import requests

    furthest = have = _size(part)
    failures = 0
    while True:
        headers = {"Range": f"bytes={have}-"} if have else {}
        try:
            with session.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
                status = answer.status_code
                if status == 416 and have:
                    return  # the part is as long as the file, or longer: its checksum will tell
                if status == 429 or status >= 500:
                    raise requests.HTTPError(f"the server answered {status} {answer.reason}")
                if status not in (200, 206):
                    raise FetchError(
                        f"{url} could not be fetched (the server answered {status} {answer.reason}): "
                        f"check the source address, then {AGAIN}."
                    )
                answer.raw.enforce_content_length = True  # urllib3 1.x takes a cut for the end
                with part.open("ab" if status == 206 else "wb") as file:
                    for chunk in answer.iter_content(CHUNK_BYTES):
                        file.write(chunk)
                        if stop.is_set():
                            raise CancelledError
                return
        except ValueError as error:  # how requests says that an address has no scheme, no host, or makes no sense
            raise FetchError(f"{url} is not a web address ({error}): check the source address.") from error
        except requests.RequestException as error:
            kind = type(error).__name__
            problem = str(error) if isinstance(error, requests.HTTPError) else f"the connection failed: {kind}"
            have = _size(part)
            failures = failures + 1 if have <= furthest else 1
            furthest = max(furthest, have)
            if failures > len(RETRY_WAITS):
                raise FetchError(
                    f"{url} could not be fetched ({problem}, {failures} times in a row): {AGAIN}."
                ) from error
            if stop.wait(RETRY_WAITS[failures - 1]):
                raise CancelledError from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _disk_trouble_explained(path: Path) -> Iterator[None]:
    """Turn what the file system says about ``path`` into a sentence; network errors never get this far."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise FetchError(f"The disk is full, {where} could not be written: make room, then {AGAIN}.") from error
        raise FetchError(f"{where} is not writable ({error.strerror}): make it writable, then {AGAIN}.") from error
