"""Redaction: nothing that names a person or a place stays, what a vendor needs does."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from provision.ticket.redact import Kind, Known, Profile, Redactor

UNHURRIED = settings(deadline=None)  # on a busy machine a millisecond may take a second
WORDS = st.text(alphabet="abc .,:;=/-_'\"()[]\n\t\\", max_size=20)
IPV4 = st.ip_addresses(v=4, network="10.0.0.0/8").map(str)
IPV6 = st.ip_addresses(v=6, network="2001:db8::/32").map(str)
COLOURS = st.sampled_from(["\x1b[0m", "\x1b[1;32m", "\x1b[2J", "\x1b[01;01H", "\\n", "\r"])
HOST = "gn-7q"
KNOWN = Known(hosts=(HOST, "gn-8q"), ips=("10.1.2.3",), users=("marta",), keep=("S4X1931", "gn-8q-S77"))


def redacted(text: str, known: Known = KNOWN) -> str:
    redactor = Redactor(Profile.VENDOR, known)
    redactor.learn(text)
    return redactor.text(text)


@UNHURRIED
@given(st.lists(st.tuples(WORDS, st.one_of(IPV4, IPV6)), min_size=1, max_size=6), WORDS)
def test_no_address_that_stands_alone_survives(parts: list[tuple[str, str]], end: str) -> None:
    text = "".join(f"{word} {address} " for word, address in parts) + end
    found = redacted(text)
    for _, address in parts:
        assert address not in found


@UNHURRIED
@given(IPV4, IPV4)
def test_an_address_has_one_token_and_another_address_another(one: str, two: str) -> None:
    assume(one != two)
    redactor = Redactor(Profile.VENDOR)
    first, second, third = (redactor.text(f"from {address} port") for address in (one, two, one))
    assert first == third
    assert first != second
    assert re.fullmatch(r"from ip-\d+ port", first)


@UNHURRIED
@given(st.lists(st.one_of(WORDS, IPV4, IPV6, COLOURS, st.just(HOST), st.just("marta")), max_size=12))
def test_redacting_again_changes_nothing(parts: list[str]) -> None:
    once = redacted(" ".join(parts))
    assert redacted(once) == once


@UNHURRIED
@given(st.lists(st.one_of(WORDS, IPV4, COLOURS, st.just(HOST), st.just("marta")), max_size=12))
def test_known_names_never_survive_whatever_stands_around_them(parts: list[str]) -> None:
    found = redacted("".join(parts))
    for name in (HOST, "marta"):
        assert not re.search(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])", found)


@UNHURRIED
@given(st.lists(st.one_of(WORDS, IPV4, COLOURS, st.just(HOST)), max_size=10), st.data())
def test_in_pieces_it_comes_out_as_in_one(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    redactor = Redactor(Profile.VENDOR, KNOWN)
    redactor.learn(text)
    found = redactor.pieces(pieces)
    assert len(found) == len(pieces)
    assert "".join(found) == redactor.text(text)


@UNHURRIED
@given(st.text(max_size=60))
def test_the_internal_profile_changes_nothing(text: str) -> None:
    redactor = Redactor(Profile.INTERNAL, KNOWN)
    redactor.learn(text)
    assert redactor.text(text) == text


MACS = st.binary(min_size=6, max_size=6).map(lambda raw: raw.hex(":"))
PCI = st.integers(0, 255).map(lambda bus: f"0000:{bus:02x}:00.0")
UUIDS = st.uuids().map(str)


@UNHURRIED
@given(
    st.one_of(
        MACS, PCI, UUIDS, st.sampled_from(["S4X1931", "gn-8q-S77", "GPU-ed4cb16d-1366", "96.00.74.00.01"])
    )
)
def test_what_identifies_hardware_is_kept(identity: str) -> None:
    for text in (identity, f"serial: {identity}", f"dev {identity}: up", f'{{"id": "{identity}"}}'):
        assert redacted(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "firmware version 7.10.30.1 is running",
        '"FirmwareVersion": "1.2.3.4"',
        "NVSwitch fw 1.4.2.1",
        "netmask 255.255.255.0 and 0.0.0.0",
        "inet 127.0.0.1/8",
        "modprobe@drm.service, user@1000.service and getty@tty1.service",
        "memory@80000000 and /soc@0/pcie@1",
        '"Members@odata.count": 12, "ResetType@Redfish.AllowableValues"',
        "std::vector<int> a::b_c",
        "10:29:13 and 2026-08-21T14:51:00Z",
        "port guid 00:11:22:ff:fe:33:44:55",
        "session opened for user root(uid=0) by (uid=0)",
        "see https://docs.nvidia.com/deploy/xid-errors/ and http://ipxe.org/4c0a6035",
        "maximum number of user sessions, mitigation for user data",
        "1.2.3.4.5 is no address",
        "Linux version 6.1.0 (build) #1 SMP, version 6",
    ],
)
def test_what_only_looks_like_a_name_is_kept(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("text", "gone", "token"),
    [
        ("Accepted publickey for ana from 10.0.0.9 port 22", "ana", "user-1"),
        ("Failed password for invalid user bob from 10.0.0.9", "bob", "user-1"),
        ("pam_unix(sshd:session): session opened for user carla(uid=1000)", "carla", "user-1"),
        ("New session 5 of user dora.", "dora", "user-1"),
        ("sudo[231]:   eva : PWD=/home/eva ; USER=root", "eva", "user-1"),
        ("cwd /home/frida/exp", "frida", "user-1"),
        ("Disconnected from user gina 10.0.0.9 port 37264", "gina", "user-1"),
        ("Successfully logged in using ubuntu, from 10.0.0.9", "ubuntu", "user-1"),
        ('"UserName": "heidi"', "heidi", "user-1"),
        ("ina@c7:~$ ", "ina", "user-1"),
        ("Nov 30 10:30:05 c7-04 sshd[1]: hello", "c7-04", "host-2"),
        ("2026-08-21T14:51:00.5Z c7-04 kernel: hello", "c7-04", "host-2"),
        ("Linux c7-04 6.1.0-18 #1 SMP", "c7-04", "host-2"),
        ("c7-04 login: ", "c7-04", "host-2"),
        ("Hostname set to <c7-04>.", "c7-04", "host-2"),
        ("GET https://reg.dc1.example.com/v2/", "reg.dc1.example.com", "host-2"),
        ("gn-7q.dc1.example.com is up", "dc1", "host-1"),
        ("gn-7q.maas is up", "maas", "host-1"),
        ("scontrol: JobId=88 JobName=llama-70b Nodes=1", "llama-70b", "job-1"),
        ("NVRM: Xid (PCI:0000:1b:00): 31, pid=77, name=train_x, Ch 8", "train_x", "job-1"),
        ("Process ID  : 5\n      Type   : C\n      Name   : /opt/exp42/run", "exp42", "job-1"),
        ("inet6 addr:fe80::1234:5/64", "fe80", "ip-1"),
        ("net0: fe80::1: unreachable", "fe80", "ip-1"),
    ],
)  # fmt: skip
def test_names_are_known_by_what_stands_around_them(text: str, gone: str, token: str) -> None:
    found = redacted(text)
    assert gone not in found
    assert token in found


def test_a_name_met_late_is_replaced_early_and_in_every_file() -> None:
    redactor = Redactor(Profile.VENDOR)
    files = ["process of quentin ran", "Accepted publickey for quentin from 10.0.0.1"]
    for text in files:
        redactor.learn(text)
    assert [redactor.text(text) for text in files] == [
        "process of user-1 ran", "Accepted publickey for user-1 from ip-1",
    ]  # fmt: skip


def test_an_ordinary_word_that_is_also_a_user_is_replaced_only_where_it_is_one() -> None:
    text = "Accepted publickey for ubuntu from 10.0.0.1\nlinux-image-ubuntu 5.15 ubuntu"
    assert redacted(text) == "Accepted publickey for user-1 from ip-1\nlinux-image-ubuntu 5.15 ubuntu"


def test_where_two_names_overlap_the_longer_one_is_replaced_and_once() -> None:
    assert redacted("cwd /home/gn-7q-x/y on gn-7q") == "cwd /home/user-1/y on host-1"
    assert redacted("pid=7, name=/home/ana/run") == "pid=7, name=job-1"


def test_colours_in_the_middle_of_a_name_do_not_hide_it() -> None:
    assert "gn-7q" not in re.sub(r"\x1b\[[0-9;]*m", "", redacted("\x1b[1mgn-\x1b[0m7q is up"))
    assert redacted("foo\x1b[1mgn-7q\x1b[0m") == "foo\x1b[1mhost-1\x1b[0m"
    assert redacted(r"line one\ngn-7q: up") == r"line one\nhost-1: up"


def test_the_count_says_how_much_and_never_what() -> None:
    redactor = Redactor(Profile.VENDOR, KNOWN)
    redactor.text("gn-7q 10.0.0.1 10.0.0.2 10.0.0.1")
    counts = {row.kind: (row.tokens, row.times) for row in redactor.replaced()}
    assert counts == {Kind.IP: (2, 3), Kind.HOST: (1, 1), Kind.USER: (0, 0), Kind.JOB: (0, 0)}


@UNHURRIED
@given(st.lists(st.ip_addresses(v=4).map(str), max_size=5))
def test_every_replaced_address_is_one(addresses: list[str]) -> None:
    redactor = Redactor(Profile.VENDOR)
    found = redactor.text(" ".join(addresses)).split()
    for before, after in zip(addresses, found, strict=True):
        special = ipaddress.IPv4Address(before).packed[0] in (0, 255) or before == "127.0.0.1"
        assert (after == before) == special
