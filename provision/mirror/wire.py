"""What the mirror's answers mean, and resuming what a broken connection cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import aiohttp
import aiotus

from provision.mirror.errors import (
    DigestMismatch,
    MirrorAuthRejected,
    MirrorBadAnswer,
    MirrorFull,
    MirrorRefused,
    MirrorUnreachable,
    UnknownFile,
)

_TIMES = 5  # how often a broken transfer is taken up again without having come any further
_PAUSE_S = 0.5
RANGE_UNUSABLE = 416
BROKEN = (aiohttp.ClientError, TimeoutError, ConnectionError)


class Cut(aiohttp.ClientError):
    """Another request has moved this upload meanwhile: ask how far it is, and go on."""


async def raise_refusal(answer: aiohttp.ClientResponse) -> None:
    """Raise the error that an answer of 400 or more stands for; a broken service is a broken connection."""
    if answer.status < 400 or answer.status == RANGE_UNUSABLE:
        return
    code, detail = _told(answer.status, await answer.text(errors="replace"))
    refusal = _refusal(answer, code, detail)
    if refusal is not None:
        raise refusal
    if answer.status >= 500:
        raise aiohttp.ClientResponseError(
            answer.request_info, answer.history, status=answer.status, message=detail
        )
    raise MirrorBadAnswer(f"{answer.method} {answer.url.path} was answered with status {answer.status}")


def _told(status: int, text: str) -> tuple[str, str]:
    """Return the service's own code and detail, or no code where something else answers."""
    try:
        read = json.loads(text)
        return str(read["code"]), str(read["detail"])
    except (ValueError, KeyError, TypeError):
        return "", f"HTTP status {status}"


def _refusal(answer: aiohttp.ClientResponse, code: str, detail: str) -> Exception | None:
    if answer.status == 404:
        return UnknownFile(answer.url.path.rpartition("/")[2])
    if answer.status in {401, 403}:
        return MirrorAuthRejected(detail)
    if answer.status == 507:
        return MirrorFull(detail)
    hint = "docs/runbooks/mirror-refused.md"
    by_code: dict[str, Exception | None] = {
        "": None,
        "again": None,
        "not-written": None,
        "offset": Cut(detail),
        "taken-over": Cut(detail),
        "digest": DigestMismatch("the upload", detail),
        "name-taken": MirrorRefused("the name is taken", detail, "take another name, or say --replace"),
    }
    return by_code.get(code, MirrorRefused("it refused", detail, hint))


async def again(work: Callable[[], Awaitable[None]], come: Callable[[], int], url: str) -> None:
    """Do `work` until it succeeds, for as long as each failure comes further than those before.

    Raises MirrorUnreachable, MirrorBadAnswer, and the refusals that `work` meets.
    """
    failures = 0
    furthest = come()
    while True:
        try:
            await work()
        except BROKEN as error:
            failures = 0 if come() > furthest else failures + 1
            furthest = max(furthest, come())
            if failures >= _TIMES:
                raise MirrorUnreachable(url, "the transfer broke and came no further") from error
            await asyncio.sleep(_PAUSE_S * failures)
        except aiotus.ProtocolError as error:
            raise MirrorBadAnswer("what answers does not speak tus") from error
        else:
            return
