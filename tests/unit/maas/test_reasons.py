"""The one line behind "Failed deployment" and its kin."""

from __future__ import annotations

from datetime import UTC, datetime

from provision.maas.model import Event, ScriptResult
from provision.maas.reasons import failure_reason, installer_reason

HOLLOW = "Installation failed (refer to the installation log for more information)."


def events(*lines: tuple[str, str, str]) -> list[Event]:
    """Make events from (level, type, description), the oldest first."""
    at = datetime(2026, 11, 2, tzinfo=UTC)
    return [
        Event(number, at, level, kind, said, "abc123", "r7-n01")
        for number, (level, kind, said) in enumerate(lines)
    ]


def result(**changes: object) -> ScriptResult:
    plain: dict[str, object] = {
        "id": 1, "name": "memory", "kind": "Testing", "status": 2, "status_name": "Passed", "exit_status": 0,
        "started": None, "ended": None, "set_id": 1,
    }  # fmt: skip
    return ScriptResult(**(plain | changes))  # type: ignore[arg-type]


FAILED_DEPLOY = (
    ("INFO", "Deploying", ""),
    ("INFO", "Performing PXE boot", ""),
    ("ERROR", "Node installation failure", "'curtin' curtin command install"),
    ("ERROR", "Marking node failed", HOLLOW),
)

GRUB_LOG = """\
    Running command ['udevadm', 'settle'] with allowed return codes [0] (capture=False)
    warning: could not find optional file, that is fine
    Running command ['chroot', '/tmp/t/target', 'grub-install', '--target=x86_64-efi'] (capture=True)
    failed to install grub! Unexpected error while running command.
    Exit code: 1
    Reason: -
    Stdout: ''
    Stderr: Installing for x86_64-efi platform.
            Could not prepare Boot variable: No space left on device
            grub-install: error: efibootmgr failed to register the boot entry.
curtin: Installation failed with exception: Unexpected error while running command.
Command: ['curtin', 'curthooks']
Exit code: 3
"""

APT_LOG = """\
Get:1 http://mirror.site.test/debian bookworm InRelease
E: Failed to fetch http://mirror.site.test/debian/pool/l/linux.deb  Connection refused
        finish: cmd-install/stage-curthooks/builtin: FAIL: curtin command curthooks
curtin: Installation failed with exception: Unexpected error while running command.
Stderr: ''
"""


def test_the_installer_says_more_than_the_event():
    assert installer_reason(GRUB_LOG) == "Could not prepare Boot variable: No space left on device"
    assert installer_reason(APT_LOG) == (
        "E: Failed to fetch http://mirror.site.test/debian/pool/l/linux.deb Connection refused"
    )
    assert installer_reason("curtin: Installation failed with exception: Unexpected error\n") is None


def test_prefers_the_installation_log_to_events():
    log = result(kind="Installation", name="/tmp/install.log", status=3, status_name="Failed", output=APT_LOG)
    assert "Connection refused" in (failure_reason(events(*FAILED_DEPLOY), [log]) or "")


def test_without_a_log_the_event_that_says_something_is_taken():
    silent = result(kind="Installation", name="/tmp/install.log", status=3, status_name="Failed")
    found = failure_reason(events(*FAILED_DEPLOY), [silent])
    assert found == "Node installation failure: 'curtin' curtin command install"


def test_the_hollow_event_is_better_than_nothing():
    found = failure_reason(events(("INFO", "Deploying", ""), ("ERROR", "Marking node failed", HOLLOW)))
    assert found == HOLLOW


def test_names_the_script_that_failed_what_it_ran_on_and_what_it_said():
    failed = result(
        id=4, set_id=2, name="disk-check", status=3, status_name="Failed", exit_status=6, device="nvme1n1",
        output="starting\nSMART error: reallocated sectors 912\ndone\n",
    )  # fmt: skip
    timed_out = result(id=5, set_id=2, name="memory", status=4, status_name="Timed out", exit_status=None)
    older = result(id=1, set_id=1, name="network", status=3, status_name="Failed", exit_status=1)
    assert failure_reason([], [failed, timed_out, older]) == (
        "disk-check on nvme1n1 failed (exit status 6): SMART error: reallocated sectors 912 (and 1 more)"
    )


def test_a_failure_that_was_repaired_in_a_newer_run_is_no_reason():
    assert failure_reason([], [result(set_id=1, status=3, status_name="Failed"), result(set_id=2)]) is None


def test_a_suppressed_failure_is_no_reason():
    assert failure_reason([], [result(status=3, status_name="Failed", suppressed=True)]) is None


def test_a_bmc_that_does_not_answer_is_the_reason():
    found = failure_reason(
        events(
            ("INFO", "Commissioning", ""),
            ("INFO", "Powering on", ""),
            ("ERROR", "Failed to query node's BMC", "(bringer) - Unable to power control the node."),
        )
    )  # fmt: skip
    assert found == "Failed to query node's BMC: Unable to power control the node."


def test_a_time_out_says_how_far_it_came():
    found = failure_reason(
        events(
            ("INFO", "Deploying", ""),
            ("INFO", "Powering on", ""),
            ("INFO", "Performing PXE boot", ""),
            ("ERROR", "Marking node failed", "Node operation 'Deploying' timed out after 40 minutes."),
        )
    )
    assert found == (
        "Node operation 'Deploying' timed out after 40 minutes; the last thing seen was Performing PXE boot"
    )


def test_an_earlier_attempt_is_not_blamed():
    assert failure_reason(events(*FAILED_DEPLOY, ("INFO", "Deploying", ""), ("INFO", "Deployed", ""))) is None
    assert failure_reason([]) is None
