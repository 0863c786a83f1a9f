"""Turns a function into an Invoke task that is safe to type: no positionals, no short flags, exit
codes that tell the truth, errors in three lines, and Invoke's own mute flags refused."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from invoke.context import Context
from invoke.tasks import Task

from provision import advice
from provision.errors import BadRequest
from provision.settings import Settings

# Invoke takes these for its own when they follow a task that lacks them, and then says nothing.
_SWALLOWED = {
    "dry": "invoke's --dry would run this for real; use --dry-run",
    "echo": "--echo belongs to invoke and does nothing here",
    "pty": "--pty belongs to invoke and does nothing here",
    "warn": "--warn-only belongs to invoke and does nothing here",
}


class Ended(Exception):
    """A command that has printed its answer and ends with `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


Body = Callable[..., None]


def command(options: Mapping[str, str], *, lists: tuple[str, ...] = ()) -> Callable[[Body], Task[Any]]:
    """Make a task of a function. `options` documents every parameter; `lists` may be given repeatedly."""

    def make(body: Body) -> Task[Any]:
        missing = set(inspect.signature(body).parameters) - set(options)
        if missing:
            raise TypeError(f"{body.__name__}: no help for {', '.join(sorted(missing))}")

        def run(context: Context, **given: Any) -> None:
            _refuse_swallowed(context)
            _run(body, {name: () if value is None else value for name, value in given.items()})

        run.__name__ = body.__name__
        run.__doc__ = body.__doc__
        run.__signature__ = _with_context(body)  # type: ignore[attr-defined]
        return Task(
            run,
            name=body.__name__.rstrip("_").replace("_", "-"),
            positional=[],
            iterable=list(lists),
            auto_shortflags=False,
            help={name.rstrip("_").replace("_", "-"): text for name, text in options.items()},
        )

    return make


def _with_context(body: Body) -> inspect.Signature:
    """Return the signature that Invoke reads. It takes an option's kind from its default, and would
    make characters of a list whose default is a tuple."""
    signature = inspect.signature(body)
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    options = [
        option.replace(default=None) if option.default == () else option
        for option in signature.parameters.values()
    ]
    return signature.replace(parameters=[context, *options])


def _refuse_swallowed(context: Context) -> None:
    for name, why in _SWALLOWED.items():
        if context.config.run.get(name):
            fail(f"--{name}", "not an option of this command", why, advice.EXIT_BAD_REQUEST)


def _run(body: Body, given: dict[str, Any]) -> None:
    """Run a command's body; everything that it can end with becomes an exit status here."""
    try:
        _refuse_bare(body, given)
        body(**given)
        sys.stdout.flush()
    except Ended as end:
        _exit(end.status)
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        _exit(advice.EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our answer has gone; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _exit(advice.EXIT_OK)
    except Exception as error:  # noqa: BLE001  the one place that catches all: no traceback reaches an operator
        known = advice.advice_for(error)
        if known is None:
            fail(
                "muster",
                f"a bug of ours: {type(error).__name__}",
                str(error),
                advice.EXIT_BUG,
                _report_bug(error),
            )
        where, what, why = advice.told(error)
        fail(where, what, why, known.exit, advice.next_after(error))


def _refuse_bare(body: Body, given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value is True and _takes_text(body, name):
            option = f"--{name.replace('_', '-')}"
            raise BadRequest(option, "it needs a value", "see --help of this command")


def _takes_text(body: Body, name: str) -> bool:
    return isinstance(inspect.signature(body).parameters[name].default, str)


def fail(
    where: str, what: str, why: str, status: int, next_step: str = "see --help of this command"
) -> NoReturn:
    """Print an error in its three lines and end with `status`."""
    lines = (f"error: {where}: {_line(what)}", f"  why: {_line(why)}", f"  next: {_line(next_step)}")
    sys.stderr.write("\n".join(lines) + "\n")
    _exit(status)


def _line(text: str) -> str:
    return " ".join(text.split())


def _exit(status: int) -> NoReturn:
    # A second Ctrl-C while the interpreter cleans up must not print a traceback either.
    with contextlib.suppress(KeyboardInterrupt):
        sys.stdout.flush()
        sys.stderr.flush()
    raise SystemExit(status)


def _report_bug(error: BaseException) -> str:
    """Write the traceback where it can be sent from, and say where that is."""
    text = "".join(traceback.format_exception(error))
    for folder in (_state_folder(), Path("/tmp")):  # noqa: S108  only where the state folder cannot be written
        path = folder / f"bug-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.txt"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError:
            continue
        return f"send us {path}"
    return "send us the lines above"


def _state_folder() -> Path:
    try:
        return Settings.from_environment().state / "bugs"
    except BadRequest:
        return Path("/tmp")  # noqa: S108  see above
