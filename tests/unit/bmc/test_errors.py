"""Errors: they survive pickling, name the node, and never hold a secret."""

from __future__ import annotations

import inspect
import pickle

import pytest

from bmc import errors
from bmc.capability import BmcTarget, Credential

EXAMPLES: tuple[errors.BmcError, ...] = (
    errors.Unreachable("n1", "bmc1", 4.5, "the name does not resolve"),
    errors.AuthRejected("n1", "bmc1", "admin", errors.Rejection.WRONG_PASSWORD),
    errors.PrivilegeTooLow("n1", "bmc1", "viewer", "power control"),
    errors.WrongSuite("n1", "bmc1", (17, 3), "authentication 0"),
    errors.Busy("n1", "bmc1", errors.Occupied.SESSIONS, 3.0),
    errors.Unsupported("n1", "bmc1", "a screenshot"),
    errors.BadAnswer("n1", "bmc1", "too short"),
    errors.CommandRefused("n1", "bmc1", "power control", 0xD5),
    errors.PowerNotReached("n1", "bmc1", "off", "off", 60.0),
    errors.CertificateRefused("n1", "bmc1", "aa", "bb"),
    errors.TaskFailed("n1", "bmc1", "JID_1", "Exception", "no room"),
    errors.PatternNotSeen("n1", "bmc1", "login:", 60.0),
    errors.DeadlinePassed("n1", "bmc1", 60.0),
    errors.ActionFailed("n1", "bmc1", "KeyError"),
    errors.RecordingFailed("n1", "bmc1", "/var/console/n1", "No space left on device"),
)


def test_every_leaf_has_an_example() -> None:
    leaves = {
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.BmcError)
    }
    assert leaves - {errors.BmcError} == {type(example) for example in EXAMPLES}


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_survives_pickling_with_its_facts(error: errors.BmcError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_names_node_and_address(error: errors.BmcError) -> None:
    assert str(error).startswith("n1: BMC bmc1: ")


def test_no_secret_shows_in_a_target() -> None:
    shown = repr(BmcTarget("n1", "bmc1", Credential("admin", "pa55word", "k3y")))
    assert "pa55word" not in shown
    assert "k3y" not in shown
