"""What stands for `ssh` to a fleet of emulated nodes: run as `python3 -IS fleet_ssh.py FOLDER ssh's words…`.

It does what the real client and a node's Python would: takes the collector's script from its input, and
gives evidence for that request, of this moment, sealed. FOLDER holds `evidence.json` (what a healthy node
sends), perhaps `evidence-ADDRESS.json` (what that node sends instead), and `hung.json` (address -> how that
node hangs). Standard library only, and little of it: two CPUs play five hundred nodes beside the controller
they wait for.
"""
# ruff: noqa: PTH123  pathlib takes longer to load than all the rest

import hashlib
import json
import re
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing

COLLECTION_S = 9.5  # a second reading of counters comes so much after the first


def main(folder: str, words: "list[str]") -> int:
    """Answer as one node, or hang as its row says."""
    address = next(word for word in words if "@" in word and not word.startswith("-")).partition("@")[2]
    with open(folder + "/hung.json") as source:
        how = str(json.load(source).get(address, ""))
    if how == "no banner":
        limit = next(word for word in words if word.startswith("ConnectTimeout="))
        time.sleep(float(limit.partition("=")[2]))
        sys.stderr.write("Connection timed out during banner exchange\n")
        return 255
    if how == "no answer":
        time.sleep(3600.0)
    script = sys.stdin.buffer.read().decode("ascii")
    began = time.time()
    document = evidence(folder, address)
    for key, asked in (("nonce", "nonce"), ("plan", "digest")):
        document[key] = find(f'"{asked}": "([0-9a-f]+)"', script)
    if how == "a tool hangs":
        total_s = float(find(r'"total_s": ([0-9.]+)', script))
        time.sleep(total_s + 1.0)
        for item in document["items"]:
            if item["id"] in ("gpu.smi", "nvlink.status"):
                item.update(rc=None, timed_out=True, state="D", abandoned="D", seconds=total_s)
    else:
        time.sleep(COLLECTION_S)
    mark = hashlib.sha256(address.encode()).hexdigest()
    own_parts(document, mark[:4])
    # Each node has its own boot, and a clock that is right.
    boot_time = began - document["began"]["uptime_s"]
    boot_id = "-".join((mark[:8], mark[8:12], mark[12:16], mark[16:20], mark[20:32]))
    for moment, at in (("began", began), ("ended", time.time())):
        document[moment].update(boot_id=boot_id, boot_time=boot_time, wall_clock=at, uptime_s=at - boot_time)
    packed = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    document["seal"] = hashlib.sha256(packed.encode("ascii")).hexdigest()
    sys.stdout.write(json.dumps(document, ensure_ascii=True) + "\n")
    sys.stdout.flush()
    return 0


def evidence(folder: str, address: str) -> "dict[str, typing.Any]":
    """Return what a node sends: its own, where it has any."""
    try:
        with open(folder + "/evidence-" + address + ".json") as source:
            return json.load(source)
    except FileNotFoundError:
        with open(folder + "/evidence.json") as source:
            return json.load(source)


def own_parts(document: "dict[str, typing.Any]", mark: str) -> None:
    """Give a node GPUs of its own, so that no reading of one node's output serves for another's."""
    for item in document["items"]:
        text = item["stdout"].get("text", "")
        if "GPU-" in text:
            data = re.sub("GPU-[0-9a-f]{4}", "GPU-" + mark, text)
            packed = data.encode()
            item["stdout"] = {
                "bytes": len(packed),
                "sha256": hashlib.sha256(packed).hexdigest(),
                "text": data,
            }


def find(pattern: str, text: str) -> str:
    """Return what a pattern finds; a script of another form is a mistake of the benchmark."""
    found = re.search(pattern, text)
    if found is None:
        raise ValueError("no " + pattern + " in the collector's script")
    return found.group(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
