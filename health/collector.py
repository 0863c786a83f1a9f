"""Gather raw evidence on a node and print it as one JSON document.

Sent to `python3 -` over SSH inside a script that sets PLAN and SOURCE and runs SOURCE (plan.py),
so nothing is installed and no argument grows. Standard library of Python 3.6 only. It judges nothing: every
item comes back with what ran, how it ended and what it printed, and a seal over the whole.
"""

import base64
import errno
import glob
import hashlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import Any, BinaryIO, Callable, Dict, List, Optional

Item = Dict[str, Any]

SCHEMA = 1
SIDE_BY_SIDE = 16
# A tool that is gone may leave a child that holds its pipe open: what it still says is not waited for.
DRAIN_S = 0.3
# After SIGKILL a process that is not gone within this time sits in the kernel (state D).
REAP_S = 1.0
CHUNK = 65536
NOT_FOUND = "command not found"
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/mellanox/bin"


def read_text(path: str) -> str:
    """Return a small file of /proc or /sys, or "" where there is none."""
    try:
        with open(path, "r") as source:
            return source.read()
    except (OSError, UnicodeDecodeError):
        return ""


def boot_identity() -> Item:
    """Return what tells this boot from another, and this clock from the controller's."""
    boot_time = 0
    for line in read_text("/proc/stat").splitlines():
        if line.startswith("btime "):
            boot_time = int(line.split()[1])
    uptime = read_text("/proc/uptime").split()
    return {
        "boot_id": read_text("/proc/sys/kernel/random/boot_id").strip(),
        "uptime_s": float(uptime[0]) if uptime else -1.0,
        "boot_time": boot_time,
        "wall_clock": time.time(),
    }


class Tail:
    """Keeps the first and the last bytes of a stream, within a limit, and counts all of them."""

    def __init__(self, limit: int) -> None:
        self.head_limit = limit // 4
        self.tail_limit = limit - self.head_limit
        self.head = b""
        self.tail: List[bytes] = []
        self.tail_size = 0
        self.total = 0
        self.digest = hashlib.sha256()

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self.digest.update(data)
        room = self.head_limit - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        if not data:
            return
        self.tail.append(data)
        self.tail_size += len(data)
        while self.tail and self.tail_size - len(self.tail[0]) >= self.tail_limit:
            self.tail_size -= len(self.tail.pop(0))

    @property
    def truncated(self) -> bool:
        return self.total > self.head_limit + self.tail_limit

    def document(self) -> Item:
        rest = b"".join(self.tail)[-self.tail_limit :]
        document: Item = {"bytes": self.total, "sha256": self.digest.hexdigest()}
        if self.truncated:
            document["truncated"] = True
            document["cut_after"] = len(self.head)
        data = self.head + rest
        try:
            document["text"] = data.decode("utf-8")
        except UnicodeDecodeError:
            document["base64"] = base64.b64encode(data).decode("ascii")
        return document


def read_kmsg(out: int) -> None:
    """Copy the kernel's ring buffer, record by record, to the descriptor `out`."""
    source = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    while True:
        try:
            record = os.read(source, 16384)
        except OSError as error:
            if error.errno == errno.EPIPE:
                # The ring moved on under the reader; the gap shows in the sequence numbers.
                continue
            if error.errno in (errno.EAGAIN, errno.EINTR):
                break
            raise
        if not record:
            break
        write_all(out, record)
    write_all(out, b"# end of kmsg\n")


def read_files(pattern: str, out: int, complaints: int) -> int:
    """Copy the files that match; more than one come with their paths. Returns an exit code."""
    many = any(sign in pattern for sign in "*?[")
    paths = sorted(glob.glob(pattern)) if many else [pattern]
    code = 0 if paths else 2
    count = 0
    if not paths:
        write_all(complaints, ("no file matches " + pattern + "\n").encode())
    for path in paths:
        if many and os.path.isdir(path):
            continue
        try:
            with open(path, "rb") as source:
                first = source.read(CHUNK)
                if many:
                    write_all(out, ("==> " + path + " <==\n").encode())
                last = copy(first, source, out)
                if many and last != b"\n":
                    write_all(out, b"\n")
                count += 1
        except OSError as error:
            # One register of many may refuse to be read, as link state does on a port that is down.
            write_all(complaints, (path + ": " + os.strerror(error.errno or 5) + "\n").encode())
            code = 13 if error.errno in (errno.EACCES, errno.EPERM) else (code or 1)
    if many:
        write_end(out, count)
    return code


def copy(data: bytes, source: BinaryIO, out: int) -> bytes:
    """Copy what was read and what follows; returns the last byte."""
    last = b"\n"
    while data:
        write_all(out, data)
        last = data[-1:]
        data = source.read(CHUNK)
    return last


def run_each(argv: List[str], pattern: str, out: int, complaints: int) -> int:
    """Run a command once for each path that matches, "{}" standing for it; outputs come with their paths."""
    paths = sorted(glob.glob(pattern))
    for path in paths:
        write_all(out, ("==> " + path + " <==\n").encode())
        name = os.path.basename(path)
        command = [word.replace("{}", path).replace("{name}", name) for word in argv]
        try:
            subprocess.call(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=complaints, env=tool_environment()
            )
        except OSError as error:
            write_all(complaints, os.strerror(error.errno or 2).encode())
            return 126 if error.errno in (errno.EACCES, errno.EPERM) else 127
        write_all(out, b"\n")
    write_end(out, len(paths))
    return 0 if paths else 2


def write_end(out: int, count: int) -> None:
    """Say how many came: what is cut short afterwards lacks this line, or says another number."""
    write_all(out, ("==> %d in all <==\n" % count).encode())


def tool_environment() -> Dict[str, str]:
    """Return the environment of every tool: one language, and nothing that asks for a terminal."""
    return dict(os.environ, LC_ALL="C", LANG="C", TERM="dumb", PATH=SEARCH_PATH)


def write_all(out: int, data: bytes) -> None:
    while data:
        data = data[os.write(out, data) :]


class Running:
    """One item under way: a child in its own session, two pipes, a deadline."""

    def __init__(self, item: Item, as_root: bool, epoch: float) -> None:
        self.item = item
        self.began = time.monotonic()
        self.at = self.began - epoch
        self.deadline = self.began + item["timeout_s"]
        limit = item["limit_bytes"]
        self.streams = {"stdout": Tail(limit), "stderr": Tail(min(limit, 16384))}
        self.pipes: Dict[int, str] = {}
        self.rc: Optional[int] = None
        self.ended: Optional[float] = None
        self.problem: Optional[str] = None
        self.timed_out = False
        self.abandoned: Optional[str] = None
        self.state: Optional[str] = None
        self.through_sudo = bool(item.get("needs_root")) and not as_root
        self.pid = 0
        self.start()

    def start(self) -> None:
        argv = self.item.get("argv")
        if argv:
            if self.through_sudo:
                argv = ["sudo", "-n", "--", *argv]
            each = self.item.get("each")
            if each:
                self.fork(lambda out, complaints: run_each(argv, each, out, complaints))
            else:
                self.spawn(argv)
        elif self.through_sudo:
            # Only another process can have the rights: it is given this same source to read with.
            source = globals()["SOURCE"]
            self.spawn(["sudo", "-n", "--", sys.executable, "-c", source, "--read", self.item["file"]])
        else:
            self.fork(lambda out, complaints: read_source(self.item["file"], out, complaints))

    def spawn(self, argv: List[str]) -> None:
        try:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                close_fds=True,
                start_new_session=True,
                env=tool_environment(),
                cwd="/",
            )
        except OSError as error:
            self.problem = "denied" if error.errno in (errno.EACCES, errno.EPERM) else "missing"
            self.streams["stderr"].add(os.strerror(error.errno or 2).encode())
            self.rc = 126 if self.problem == "denied" else 127
            self.ended = time.monotonic()
            return
        # Popen's own bookkeeping would warn about a child that is abandoned on purpose.
        child.returncode = 0
        self.pid = child.pid
        for name, pipe in (("stdout", child.stdout), ("stderr", child.stderr)):
            if pipe is not None:
                self.adopt(name, os.dup(pipe.fileno()))
                pipe.close()

    def fork(self, work: Callable[[int, int], int]) -> None:
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.setsid()
                os.close(out_read)
                os.close(err_read)
                code = work(out_write, err_write)
            except BaseException as error:
                os.write(err_write, repr(error).encode()[:500])
            finally:
                os._exit(code)
        os.close(out_write)
        os.close(err_write)
        self.pid = pid
        self.adopt("stdout", out_read)
        self.adopt("stderr", err_read)

    def adopt(self, name: str, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.pipes[descriptor] = name

    def read(self, descriptor: int) -> bool:
        """Take what a pipe holds; returns False when it has ended."""
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return True
        if data:
            self.streams[self.pipes[descriptor]].add(data)
            return True
        return False

    def poll(self) -> None:
        """Notice that the child has ended, without waiting for it."""
        if self.rc is not None or not self.pid:
            return
        try:
            done, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            done, status = self.pid, 0
        if done:
            self.rc = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
            self.ended = time.monotonic()

    def kill(self) -> None:
        self.timed_out = True
        self.state = process_state(self.pid)
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except PermissionError:
            kill = ["sudo", "-n", "--", "kill", "-KILL", "--", "-" + str(self.pid)]
            subprocess.Popen(kill, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True).returncode = 0  # fmt: skip
        except ProcessLookupError:
            pass
        self.deadline = time.monotonic() + REAP_S

    def finished(self, now: float) -> bool:
        """Say whether nothing more will come of this item."""
        self.poll()
        if self.rc is not None:
            return not self.pipes or now > (self.ended or now) + DRAIN_S
        if now < self.deadline:
            return False
        if not self.timed_out:
            self.kill()
            return False
        self.abandoned = process_state(self.pid)
        return True

    def document(self) -> Item:
        item = self.item
        errors = self.streams["stderr"].document()
        said = errors.get("text", "").strip()
        document: Item = {
            "id": item["id"],
            "rc": self.rc,
            "at_s": round(self.at, 3),
            "seconds": round((self.ended or time.monotonic()) - self.began, 3),
            "timed_out": self.timed_out,
            "denied": self.problem == "denied" or refused(self, said),
            "missing": self.problem == "missing" or not_there(self, said),
            "stdout": self.streams["stdout"].document(),
            "stderr": errors,
        }
        document.update(what_ran(item))
        if self.state:
            document["state"] = self.state
        if self.abandoned:
            document["abandoned"] = self.abandoned
        return document


def what_ran(item: Item) -> Item:
    """Return what identifies an item; a script inside a command line is shown by its name."""
    ran = {key: item[key] for key in ("argv", "file", "each") if item.get(key)}
    if item.get("shown"):
        ran["argv"] = item["shown"]
    return ran


def refused(running: Running, errors: str) -> bool:
    """Say whether the item failed for want of rights rather than for what it looked at."""
    if running.rc in (0, None):
        return False
    if running.through_sudo and errors.startswith("sudo:"):
        return not errors.endswith(NOT_FOUND)
    return running.rc == 13 and bool(running.item.get("file"))


def not_there(running: Running, errors: str) -> bool:
    """Say whether the tool itself is not installed."""
    if running.through_sudo and errors.endswith(NOT_FOUND):
        return True
    return running.rc == 127 and bool(running.item.get("each"))


def process_state(pid: int) -> str:
    """Return the kernel's letter for a process and where it waits, "D folio_wait_bit" for example."""
    stat = read_text("/proc/%d/stat" % pid)
    letter = stat.rpartition(")")[2].split()[:1]
    place = read_text("/proc/%d/wchan" % pid).strip("\0 \n")
    return " ".join([*letter, place] if place not in ("", "0") else letter) or "gone"


def read_source(name: str, out: int, complaints: int) -> int:
    if name == "/dev/kmsg":
        try:
            read_kmsg(out)
        except OSError as error:
            write_all(complaints, (name + ": " + os.strerror(error.errno or 5) + "\n").encode())
            return 13 if error.errno in (errno.EACCES, errno.EPERM) else 1
        return 0
    return read_files(name, out, complaints)


def not_started(item: Item) -> Item:
    """Describe an item that the total time left no room for."""
    empty = Tail(4).document()
    document: Item = {
        "id": item["id"],
        "rc": None,
        "at_s": 0.0,
        "seconds": 0.0,
        "timed_out": True,
        "denied": False,
        "missing": False,
        "not_started": True,
        "stdout": empty,
        "stderr": empty,
    }
    document.update(what_ran(item))
    return document


def collect(plan: Item) -> List[Item]:
    """Run the plan's items side by side and return their documents in the plan's order."""
    as_root = os.geteuid() == 0
    epoch = time.monotonic()
    stop = epoch + plan["total_s"]
    waiting = sorted(plan["items"], key=lambda item: (item.get("alone", False), item.get("after_s", 0.0)))
    running: List[Running] = []
    documents: Dict[str, Item] = {}
    selector = selectors.DefaultSelector()
    while waiting or running:
        now = time.monotonic()
        while waiting and len(running) < SIDE_BY_SIDE and now < stop:
            if now < epoch + waiting[0].get("after_s", 0.0):
                break
            # A load test shares the node with nothing, or it measures what it shares.
            if running and (waiting[0].get("alone") or running[-1].item.get("alone")):
                break
            started = Running(waiting.pop(0), as_root, epoch)
            running.append(started)
            for descriptor in started.pipes:
                selector.register(descriptor, selectors.EVENT_READ, started)
        if now >= stop:
            for item in waiting:
                documents[item["id"]] = not_started(item)
            waiting = []
            for one in running:
                if not one.timed_out:
                    one.deadline = min(one.deadline, now)
        for key, _ in selector.select(0.02):
            if not key.data.read(key.fd):
                selector.unregister(key.fd)
                os.close(key.fd)
                del key.data.pipes[key.fd]
        now = time.monotonic()
        for one in [one for one in running if one.finished(now)]:
            running.remove(one)
            for descriptor in list(one.pipes):
                one.read(descriptor)
                selector.unregister(descriptor)
                os.close(descriptor)
            documents[one.item["id"]] = one.document()
    return [documents[item["id"]] for item in plan["items"]]


def seal(document: Item) -> str:
    """Return the digest that proves the document whole; its own key is left out."""
    body = {key: value for key, value in document.items() if key != "seal"}
    packed = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(packed.encode("ascii")).hexdigest()


def main(plan: Item) -> None:
    began = boot_identity()
    document = {
        "schema": SCHEMA,
        "nonce": plan["nonce"],
        "plan": plan["digest"],
        "user": os.geteuid(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "began": began,
        "items": collect(plan),
    }
    document["ended"] = boot_identity()
    document["seal"] = seal(document)
    sys.stdout.write(json.dumps(document, ensure_ascii=True) + "\n")
    sys.stdout.flush()
    # Threads and children that hang must not keep the session open.
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        os._exit(read_source(sys.argv[2], 1, 2))
    main(globals()["PLAN"])
