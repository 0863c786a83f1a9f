# ruff: noqa: ARG002, B905, BLE001, S311, UP006, UP031, UP035, UP045  runs with the Python of old nodes
"""Multiply matrices on every GPU at once and check each product exactly; print one JSON line a GPU and kind.

Operands are small integers, so that every sum is exact in the arithmetic under test, and a product C of
A and B is right when C times a vector is A times (B times that vector), reckoned in 64-bit numbers. A wrong
sum that hardware does not report shows here. Runs with torch or cupy; `plain` multiplies small matrices
with Python alone. Python 3.6 and later.
"""

import importlib
import json
import random
import sys
import threading
import time
from typing import Any, Dict, List, Optional

# Kind, largest operand, and the size that keeps sums exact: 2048 in half precision, 2**24 in single.
KINDS = (("fp16", 1, 8192), ("fp32", 15, 4096))


class Library:
    """What multiplies, on one GPU."""

    name = ""

    def __init__(self, index: int) -> None:
        self.index = index

    @staticmethod
    def count() -> int:
        raise NotImplementedError

    def operand(self, size: int, most: int, kind: str, seed: int) -> Any:
        raise NotImplementedError

    def multiply(self, left: Any, right: Any) -> Any:
        return left @ right

    def wait(self) -> None:
        """Return when what was begun is done."""

    def wrong(self, left: Any, right: Any, product: Any, seed: int) -> int:
        """Return how many rows of the product are not what they must be."""
        raise NotImplementedError


class Torch(Library):
    """One GPU through torch."""

    name = "torch"

    def __init__(self, index: int) -> None:
        self.torch = importlib.import_module("torch")
        self.device = self.torch.device("cuda", index)
        self.torch.backends.cuda.matmul.allow_tf32 = True

    @staticmethod
    def count() -> int:
        return int(importlib.import_module("torch").cuda.device_count())

    def operand(self, size: int, most: int, kind: str, seed: int) -> Any:
        generator = self.torch.Generator(device=self.device).manual_seed(seed)
        dtype = self.torch.float16 if kind == "fp16" else self.torch.float32
        numbers = self.torch.randint(-most, most + 1, (size, size), generator=generator, device=self.device)
        return numbers.to(dtype)

    def wait(self) -> None:
        self.torch.cuda.synchronize(self.device)

    def wrong(self, left: Any, right: Any, product: Any, seed: int) -> int:
        generator = self.torch.Generator(device=self.device).manual_seed(seed)
        weights = self.torch.randint(1, 1000, (left.shape[1], 1), generator=generator, device=self.device)
        weights = weights.double()
        expected = left.double() @ (right.double() @ weights)
        return int((product.double() @ weights != expected).sum().item())


class Cupy(Library):
    """One GPU through cupy."""

    name = "cupy"

    def __init__(self, index: int) -> None:
        self.cupy = importlib.import_module("cupy")
        self.cupy.cuda.Device(index).use()

    @staticmethod
    def count() -> int:
        return int(importlib.import_module("cupy").cuda.runtime.getDeviceCount())

    def operand(self, size: int, most: int, kind: str, seed: int) -> Any:
        generator = self.cupy.random.RandomState(seed)
        numbers = generator.randint(-most, most + 1, (size, size))
        return numbers.astype(self.cupy.float16 if kind == "fp16" else self.cupy.float32)

    def wait(self) -> None:
        self.cupy.cuda.get_current_stream().synchronize()

    def wrong(self, left: Any, right: Any, product: Any, seed: int) -> int:
        weights = self.cupy.random.RandomState(seed).randint(1, 1000, (left.shape[1], 1))
        weights = weights.astype(self.cupy.float64)
        wide = self.cupy.float64
        expected = left.astype(wide) @ (right.astype(wide) @ weights)
        return int((product.astype(wide) @ weights != expected).sum())


class Plain(Library):
    """The CPU, with lists: to prove this program where there is no GPU."""

    name = "plain"

    @staticmethod
    def count() -> int:
        return 2

    def operand(self, size: int, most: int, kind: str, seed: int) -> Any:
        numbers = random.Random(seed)
        return [[numbers.randint(-most, most) for _ in range(size)] for _ in range(size)]

    def multiply(self, left: Any, right: Any) -> Any:
        columns = list(zip(*right))
        return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]

    def wrong(self, left: Any, right: Any, product: Any, seed: int) -> int:
        numbers = random.Random(seed)
        weights = [numbers.randint(1, 999) for _ in left]
        inner = times(right, weights)
        return sum(1 for a, b in zip(times(product, weights), times(left, inner)) if a != b)


def times(matrix: Any, vector: Any) -> List[int]:
    """Multiply a matrix of lists by a vector."""
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def load(kind: str) -> Optional[Any]:
    """Return the library to multiply with."""
    if kind == "plain":
        return Plain
    for candidate in (Torch, Cupy):
        try:
            if candidate.count():
                return candidate
        except Exception as error:  # a library that is there and broken is as good as none
            sys.stderr.write("%s: %s\n" % (candidate.name, str(error).strip().splitlines()[:1]))
    return None


def work(library: Any, index: int, seconds: float, size: int, lines: List[Dict[str, Any]]) -> None:
    """Multiply on one GPU until the time is over; every product is checked."""
    try:
        gpu = library(index)
        for kind, most, usual in KINDS:
            lines.append(dict(measure(gpu, kind, most, size or usual, seconds), gpu=index, kind=kind))
    except Exception as error:  # told as this GPU's result: the others go on
        lines.append({"gpu": index, "error": str(error).strip().splitlines()[:1]})


def measure(gpu: Library, kind: str, most: int, size: int, seconds: float) -> Dict[str, Any]:
    """Multiply one kind until the time is over, and at least twice."""
    rounds, wrong, busy, seed = 0, 0, 0.0, 0
    end = time.time() + seconds
    while rounds < 2 or time.time() < end:
        seed += 1
        left = gpu.operand(size, most, kind, seed)
        right = gpu.operand(size, most, kind, seed + 7919)
        product = gpu.multiply(left, right)
        gpu.wait()
        repeats = 1 if gpu.name == "plain" else 20
        began = time.time()
        for _ in range(repeats):
            product = gpu.multiply(left, right)
        gpu.wait()
        if rounds:  # the first round warms up
            busy += time.time() - began
        wrong += gpu.wrong(left, right, product, seed)
        rounds += 1
    done = 2.0 * size**3 * repeats * (rounds - 1)
    return {"size": size, "rounds": rounds, "wrong": wrong, "tflops": round(done / busy / 1e12, 9)}


def main(arguments: List[str]) -> int:
    """Multiply on all GPUs at once."""
    kind = arguments[0] if arguments else "gpu"
    seconds = float(arguments[1]) if len(arguments) > 1 else 20.0
    size = int(arguments[2]) if len(arguments) > 2 else 0
    library = load(kind)
    if library is None:
        sys.stderr.write("no GPU that torch or cupy can use\n")
        return 3
    lines: List[Dict[str, Any]] = []
    count = library.count()
    threads = [threading.Thread(target=work, args=(library, n, seconds, size, lines)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for line in sorted(lines, key=lambda line: (line["gpu"], line.get("kind", ""))):
        sys.stdout.write(json.dumps(line, sort_keys=True) + "\n")
    sys.stdout.write(json.dumps({"end": True, "gpus": count, "with": library.name}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
