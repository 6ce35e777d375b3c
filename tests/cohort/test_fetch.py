"""Downloads from a real HTTP server on loopback that can be told to misbehave."""

import hashlib
import itertools
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from leadwise.cohort import fetch
from leadwise.cohort.fetch import fetch_ptbxl
from leadwise.errors import FetchError

LIST = "SHA256SUMS.txt"
SIGNAL = "records100/00000/00003_lr.dat"
AGAIN = "run the same command again to continue"


def make_tree(records: int = 6) -> dict[str, bytes]:
    """Content by path, in PTB-XL's layout, with 500 Hz files that must not be fetched."""
    content = random.Random(1).randbytes
    tree = {name: content(3000) for name in ("ptbxl_database.csv", "scp_statements.csv", "LICENSE.txt")}
    for number in range(1, records + 1):
        tree[f"records100/00000/{number:05}_lr.hea"] = content(700)
        tree[f"records100/00000/{number:05}_lr.dat"] = content(24_000)
        tree[f"records500/00000/{number:05}_hr.dat"] = content(100)
    return tree


def checksum_list(tree: dict[str, bytes]) -> bytes:
    return "".join(f"{hashlib.sha256(content).hexdigest()} {path}\n" for path, content in tree.items()).encode()


class Server(ThreadingHTTPServer):
    """Serves ``tree``; ``tricks[path]`` is played, one trick a request, before the path is served as it should be."""

    def __init__(self, tree: dict[str, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tree = {**tree, LIST: checksum_list(tree)}
        self.tricks: dict[str, Iterator[str]] = defaultdict(lambda: iter(()))
        self.ranges = True
        self.before_answer: Callable[[str], None] = lambda path: None  # noqa: ARG005
        self.seen: list[tuple[str, str | None]] = []
        self.connections = 0
        self.released = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/ptb-xl/"

    @property
    def wanted(self) -> dict[str, bytes]:
        return {path: content for path, content in self.tree.items() if not path.startswith("records500/")}

    def seen_ranges(self, path: str) -> list[str | None]:
        return [range_ for seen, range_ in self.seen if seen == path]

    def handle_error(self, request, client_address) -> None:
        """A client that hangs up is part of the tests, no reason to print a traceback."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet for headers and body: without it, delayed acknowledgements cost 40 ms an answer
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        path = self.path.removeprefix("/ptb-xl/")
        asked = self.headers["Range"]
        self.server.seen.append((path, asked))
        self.server.before_answer(path)
        trick = next(self.server.tricks[path], "")
        content = self.server.tree.get(path)
        if trick.isdigit() or content is None:
            return self.answer(int(trick or 404), b"no")
        if trick == "hang up":
            self.close_connection = True
            return None
        if trick == "stall":
            self.server.released.wait(10)
            self.close_connection = True
            return None
        if trick == "spoil":
            content = b"?" + content[1:]
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.ranges else 0
        if start >= len(content) > 0 and start:
            return self.answer(416, b"")
        cut = {"cut": 10_000, "cut early": 5_000}.get(trick)
        return self.answer(206 if start else 200, content[start:], cut)

    def answer(self, status: int, body: bytes, cut: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        self.close_connection = cut is not None


@contextmanager
def serving(tree: dict[str, bytes]) -> Iterator[Server]:
    with Server(tree) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.released.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(make_tree()) as running:
        yield running


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "RETRY_WAITS", (0.01, 0.02, 0.03))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def files_in(directory: Path) -> dict[str, bytes]:
    return {str(f.relative_to(directory)): f.read_bytes() for f in directory.rglob("*") if f.is_file()}


def failure(server: Server, directory: Path, named: str, remedy: str) -> str:
    """The one-sentence message of a download that must fail, naming the file and the remedy."""
    with pytest.raises(FetchError) as caught:
        fetch_ptbxl(directory, server.address)
    message = str(caught.value)
    assert named in message
    assert remedy in message
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_downloads_the_100_hz_part_and_nothing_else(server: Server, tmp_path: Path) -> None:
    directory = tmp_path / "not" / "there yet"
    assert fetch_ptbxl(directory, server.address) == len(server.wanted) - 1
    assert files_in(directory) == server.wanted
    assert server.seen[0] == (LIST, None)
    assert sorted(path for path, _ in server.seen) == sorted(server.wanted)


def test_address_may_lack_the_last_slash(server: Server, tmp_path: Path) -> None:
    fetch_ptbxl(tmp_path, server.address.rstrip("/"))
    assert files_in(tmp_path) == server.wanted


def test_connections_are_kept_alive(server: Server, tmp_path: Path) -> None:
    fetch_ptbxl(tmp_path, server.address, connections=2)
    assert server.connections <= 3  # one for the list, one a thread


def test_second_run_asks_for_the_list_only(server: Server, tmp_path: Path) -> None:
    fetch_ptbxl(tmp_path, server.address)
    server.seen.clear()
    assert fetch_ptbxl(tmp_path, server.address) == 0
    assert server.seen == [(LIST, None)]


def test_missing_and_damaged_files_are_fetched_again(server: Server, tmp_path: Path) -> None:
    fetch_ptbxl(tmp_path, server.address)
    (tmp_path / SIGNAL).write_bytes(b"damaged")
    (tmp_path / "LICENSE.txt").unlink()
    assert fetch_ptbxl(tmp_path, server.address) == 2
    assert files_in(tmp_path) == server.wanted


def test_cut_connection_is_continued_where_it_broke(server: Server, tmp_path: Path) -> None:
    server.tricks[SIGNAL] = iter(["cut", "cut"])
    fetch_ptbxl(tmp_path, server.address)
    # of the 10,000 bytes that arrived each time, whole chunks of 4096 are kept
    assert server.seen_ranges(SIGNAL) == [None, "bytes=8192-", "bytes=16384-"]
    assert files_in(tmp_path) == server.wanted


def test_attempts_count_only_while_nothing_arrives(server: Server, tmp_path: Path) -> None:
    server.tricks[SIGNAL] = iter(["500", "500", "500", "cut", "500", "500"])
    fetch_ptbxl(tmp_path, server.address)
    assert files_in(tmp_path) == server.wanted


def test_part_of_an_earlier_run_is_continued(server: Server, tmp_path: Path) -> None:
    part = tmp_path / f"{SIGNAL}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(server.tree[SIGNAL][:5000])
    fetch_ptbxl(tmp_path, server.address)
    assert server.seen_ranges(SIGNAL) == ["bytes=5000-"]
    assert files_in(tmp_path) == server.wanted


@pytest.mark.parametrize("rest", [b"", b"too long"])
def test_part_that_needs_no_more_bytes(server: Server, tmp_path: Path, rest: bytes) -> None:
    part = tmp_path / f"{SIGNAL}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(server.tree[SIGNAL] + rest)
    fetch_ptbxl(tmp_path, server.address)
    assert server.seen_ranges(SIGNAL)[1:] == ([None] if rest else [])
    assert files_in(tmp_path) == server.wanted


def test_server_that_ignores_ranges_is_started_over(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.tricks[SIGNAL] = iter(["cut"])
    fetch_ptbxl(tmp_path, server.address)
    assert server.seen_ranges(SIGNAL) == [None, "bytes=8192-"]
    assert files_in(tmp_path) == server.wanted


def test_server_that_ignores_ranges_and_always_cuts_is_given_up(server: Server, tmp_path: Path) -> None:
    server.ranges = False
    server.tricks[SIGNAL] = itertools.cycle(["cut", "cut early"])  # getting back to where we were is no progress
    failure(server, tmp_path, server.address + SIGNAL, AGAIN)
    assert not (tmp_path / SIGNAL).exists()


def test_wrong_checksum_once_is_fetched_once_more(server: Server, tmp_path: Path) -> None:
    server.tricks[SIGNAL] = iter(["spoil"])
    fetch_ptbxl(tmp_path, server.address)
    assert server.seen_ranges(SIGNAL) == [None, None]
    assert files_in(tmp_path) == server.wanted


@pytest.mark.parametrize("was_there", [False, True])
def test_wrong_checksum_twice_is_an_error(server: Server, tmp_path: Path, was_there: bool) -> None:
    if was_there:
        (tmp_path / SIGNAL).parent.mkdir(parents=True)
        (tmp_path / SIGNAL).write_bytes(b"damaged")
    server.tricks[SIGNAL] = itertools.repeat("spoil")
    message = failure(server, tmp_path, server.address + SIGNAL, AGAIN)
    listed = server.tree[SIGNAL]
    for content in (listed, b"?" + listed[1:]):
        assert hashlib.sha256(content).hexdigest()[:12] in message
    assert len(server.seen_ranges(SIGNAL)) == 2
    assert not (tmp_path / SIGNAL).exists()
    assert not (tmp_path / f"{SIGNAL}.part").exists()


@pytest.mark.parametrize("path", [LIST, "scp_statements.csv", SIGNAL])
@pytest.mark.parametrize("status", ["403", "404"])
def test_refusal_is_an_error_at_once(server: Server, tmp_path: Path, path: str, status: str) -> None:
    server.tricks[path] = itertools.repeat(status)
    message = failure(server, tmp_path, server.address + path, "check the source address")
    assert status in message
    assert len(server.seen_ranges(path)) == 1
    assert not (tmp_path / path).exists()


@pytest.mark.parametrize("path", [LIST, SIGNAL])
@pytest.mark.parametrize("trick", ["429", "500", "503", "hang up"])
def test_passing_trouble_is_waited_out(server: Server, tmp_path: Path, path: str, trick: str) -> None:
    server.tricks[path] = iter([trick] * 3)
    fetch_ptbxl(tmp_path, server.address)
    assert len(server.seen_ranges(path)) == 4
    assert files_in(tmp_path) == server.wanted


@pytest.mark.parametrize("path", [LIST, SIGNAL])
@pytest.mark.parametrize("trick", ["500", "hang up"])
def test_lasting_trouble_is_an_error(server: Server, tmp_path: Path, path: str, trick: str) -> None:
    server.tricks[path] = itertools.repeat(trick)
    failure(server, tmp_path, server.address + path, AGAIN)
    assert len(server.seen_ranges(path)) == 4
    assert not (tmp_path / path).exists()


def test_silence_counts_as_a_cut(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TIMEOUT", 0.3)
    server.tricks[SIGNAL] = iter(["stall"])
    start = time.monotonic()
    fetch_ptbxl(tmp_path, server.address)
    assert time.monotonic() - start < 5
    assert len(server.seen_ranges(SIGNAL)) == 2
    assert files_in(tmp_path) == server.wanted


def test_nobody_listens(tmp_path: Path) -> None:
    with Server({}) as closed:
        pass
    failure(closed, tmp_path, closed.address + LIST, AGAIN)
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize("source", ["ptb-xl", "ftp://127.0.0.1/ptb-xl", "http://"])
def test_source_that_is_no_web_address(tmp_path: Path, source: str) -> None:
    with pytest.raises(FetchError, match=r"SHA256SUMS\.txt is not a web address .* check the source address"):
        fetch_ptbxl(tmp_path, source)
    assert files_in(tmp_path) == {}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk(server: Server, tmp_path: Path) -> None:
    part = tmp_path / f"{SIGNAL}.part"
    part.parent.mkdir(parents=True)
    part.symlink_to("/dev/full")
    failure(server, tmp_path, f"The disk is full, {tmp_path / SIGNAL}", AGAIN)
    assert not (tmp_path / SIGNAL).exists()
    part.unlink()
    fetch_ptbxl(tmp_path, server.address)
    assert files_in(tmp_path) == server.wanted


def test_file_in_the_place_of_the_directory(server: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    failure(server, tmp_path / "file", f"{tmp_path / 'file'} is not writable", AGAIN)
    assert files_in(tmp_path) == {"file": b"mine"}


def test_directory_in_the_place_of_a_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / SIGNAL).mkdir(parents=True)
    failure(server, tmp_path, f"{SIGNAL}.part is not writable", AGAIN)
    assert (tmp_path / SIGNAL).is_dir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_directory_without_permission(server: Server, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    failure(server, tmp_path, "is not writable", AGAIN)


@pytest.mark.parametrize("path", ["../outside", "records100/../../outside", "/tmp/outside", "records100/.."])
def test_listed_path_that_leaves_the_directory(server: Server, tmp_path: Path, path: str) -> None:
    server.tree[LIST] += f"{'0' * 64} {path}\n".encode()
    failure(server, tmp_path / "inside", repr(path), "use another source address")
    assert server.seen == [(LIST, None)]
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize(
    "content",
    [b"<!DOCTYPE html>\n<html></html>", b"abc123 LICENSE.txt\n", b"\xff\xfe\x00", b"0" * 64 + b" LICENSE.txt\n\noh\n"],
    ids=["html", "short digest", "binary", "blank line"],
)
def test_list_that_is_not_one(server: Server, tmp_path: Path, content: bytes) -> None:
    server.tree[LIST] = content
    failure(server, tmp_path, f"{server.address}{LIST} is not a list of SHA-256 checksums", "check the source address")
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize("missing", ["ptbxl_database.csv", "LICENSE.txt", "records100/"])
def test_list_that_lacks_files(server: Server, tmp_path: Path, missing: str) -> None:
    server.tree[LIST] = checksum_list({p: c for p, c in make_tree().items() if not p.startswith(missing)})
    failure(server, tmp_path, f"{LIST} does not list {missing}:", "check that the source address")
    assert files_in(tmp_path) == {}


def test_empty_list(server: Server, tmp_path: Path) -> None:
    server.tree[LIST] = b""
    failure(
        server, tmp_path, "ptbxl_database.csv, scp_statements.csv, LICENSE.txt, records100/", "check that the source"
    )
    assert files_in(tmp_path) == {}


def test_list_as_sha256sum_writes_it(server: Server, tmp_path: Path) -> None:
    server.tree[LIST] = server.tree[LIST].replace(b" records", b"  ./records").replace(b"\n", b"\r\n")
    fetch_ptbxl(tmp_path, server.address)
    assert files_in(tmp_path) == server.wanted


def test_interrupted_run_is_continued(server: Server, tmp_path: Path) -> None:
    order = itertools.count()

    def die_after_eight(path: str) -> None:  # noqa: ARG001
        if next(order) >= 8:
            raise ConnectionAbortedError

    server.before_answer = die_after_eight
    failure(server, tmp_path, server.address, AGAIN)
    done = files_in(tmp_path)
    assert 1 < len(done) <= 8
    assert done.items() <= server.wanted.items()
    server.before_answer = lambda path: None  # noqa: ARG005
    server.seen.clear()
    fetch_ptbxl(tmp_path, server.address)
    assert files_in(tmp_path) == server.wanted
    assert sorted(path for path, _ in server.seen) == sorted({*server.wanted} - {*done} | {LIST})


def test_downloads_overlap(server: Server, tmp_path: Path) -> None:
    together = threading.Barrier(4, timeout=5)
    order = itertools.count()

    def meet(path: str) -> None:
        if path != LIST and next(order) < 4:
            together.wait()  # breaks, and fails the download, unless four requests are under way at once

    server.before_answer = meet
    fetch_ptbxl(tmp_path, server.address, connections=4)
    assert not together.broken
    assert files_in(tmp_path) == server.wanted


def test_first_error_stops_the_other_connections(tmp_path: Path) -> None:
    with serving(make_tree(records=200)) as server:
        server.before_answer = lambda path: time.sleep(0.005)  # noqa: ARG005
        server.tricks["LICENSE.txt"] = itertools.repeat("404")
        failure(server, tmp_path, server.address + "LICENSE.txt", AGAIN)
        assert len(server.seen) < 200  # of 404


def test_error_cuts_waits_short(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "RETRY_WAITS", (60,))
    waiting = threading.Event()
    server.tricks["ptbxl_database.csv"] = itertools.repeat("500")
    server.tricks["LICENSE.txt"] = itertools.repeat("404")

    def error_after_wait_began(path: str) -> None:
        if path == "ptbxl_database.csv":
            threading.Timer(0.2, waiting.set).start()
        if path == "LICENSE.txt":
            waiting.wait(5)

    server.before_answer = error_after_wait_began
    start = time.monotonic()
    failure(server, tmp_path, server.address + "LICENSE.txt", AGAIN)
    assert time.monotonic() - start < 5


def test_ctrl_c_stops_cleanly_and_keeps_what_is_done(tmp_path: Path) -> None:
    with serving(make_tree(records=100)) as server:
        order = itertools.count()
        command = [sys.executable, "-m", "leadwise", "data", "fetch", str(tmp_path), "--source", server.address]

        def interrupt(path: str) -> None:  # noqa: ARG001
            time.sleep(0.005)
            if next(order) == 40:
                process.send_signal(signal.SIGINT)

        server.before_answer = interrupt
        # a shell's background job, as these tests may be, hands down that Ctrl-C is ignored
        heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (130, "")
        assert len(server.seen) < 120  # of 204
        finished = {path: content for path, content in files_in(tmp_path).items() if not path.endswith(".part")}
        assert len(finished) > 20
        assert finished.items() <= server.wanted.items()
        server.before_answer = lambda path: None  # noqa: ARG005
        fetch_ptbxl(tmp_path, server.address)
        assert files_in(tmp_path) == server.wanted


def test_progress_counts_files(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    totals, steps = [], []

    @contextmanager
    def recorded(what: str, total: int) -> Iterator[Callable[[int], None]]:  # noqa: ARG001
        totals.append(total)
        yield steps.append

    monkeypatch.setattr(fetch, "progress", recorded)
    fetch_ptbxl(tmp_path, server.address)
    fetch_ptbxl(tmp_path, server.address)
    assert totals == [15, 15]
    assert sum(steps) == 30


def test_says_nothing(server: Server, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fetch_ptbxl(tmp_path, server.address)
    assert capfd.readouterr() == ("", "")


def test_importing_does_not_load_requests() -> None:
    code = "import sys, leadwise.cohort.fetch; sys.exit('requests' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
