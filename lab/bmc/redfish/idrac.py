"""The iDRAC itself, a Redfish manager: logs, reset, screenshots, evidence bundles."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Callable

from lab.bmc.redfish.answers import (
    CHASSIS,
    LC_SERVICE,
    MANAGER,
    ROOT,
    SYSTEM,
    Answer,
    Json,
    Rejected,
    choose,
    collection,
    error,
    link,
    missing_property,
    not_found,
    resource,
    success,
)
from lab.bmc.redfish.jobs import accepted
from lab.bmc.redfish.logs import LC_ENTRIES, SEL_ENTRIES, sel_entry
from lab.bmc.redfish.screen import screenshot
from lab.bmc.redfish.service import Call, Route
from lab.bmc.spec import Privilege

LOGS = f"{MANAGER}/LogServices"
PAGE = 50  # entries in one page of a log
_RESETS = ("GracefulRestart", "ForceRestart")
_SHOTS = ("ServerScreenShot", "LastCrashScreenShot", "Preview")
_PARTS = ("DebugLogs", "HWData", "OSAppData", "TTYLogs", "TelemetryReports", "GPULogs")


async def _managers(_call: Call) -> Answer:
    return Answer(collection(f"{ROOT}/Managers", "ManagerCollection", [link(MANAGER)]))


async def _manager(call: Call) -> Answer:
    major, minor = call.bmc.spec.hardware.firmware
    version = call.service.firmware.get("iDRAC.Embedded.1-1", f"{major}.{minor}.50.00")
    return Answer(
        resource(
            MANAGER,
            "Manager.v1_18_0.Manager",
            "Manager",
            ManagerType="BMC",
            Model="16G Monolithic",
            FirmwareVersion=version,
            UUID=str(call.bmc.guid),
            DateTime=call.service.stamp(),
            DateTimeLocalOffset="-06:00",
            LogServices=link(LOGS),
            NetworkProtocol=link(f"{MANAGER}/NetworkProtocol"),
            Status={"Health": "OK", "State": "Enabled"},
            Links={"ManagerForServers": [link(SYSTEM)], "ManagerForChassis": [link(CHASSIS)]},
            SerialConsole={
                "ConnectTypesSupported": ["IPMI"],
                "MaxConcurrentSessions": 1,
                "ServiceEnabled": True,
            },
            Actions={
                "#Manager.Reset": {
                    "target": f"{MANAGER}/Actions/Manager.Reset",
                    "ResetType@Redfish.AllowableValues": list(_RESETS),
                }
            },
        )
    )


async def _network(call: Call) -> Answer:
    path = f"{MANAGER}/NetworkProtocol"
    port = call.bmc.spec.redfish_port
    return Answer(
        resource(
            path,
            "ManagerNetworkProtocol.v1_10_0.ManagerNetworkProtocol",
            "Manager Network Protocol",
            HostName=f"idrac-{call.bmc.name}",
            HTTPS={"Port": port, "ProtocolEnabled": True, "Certificates": link(f"{path}/HTTPS/Certificates")},
            IPMI={"Port": call.bmc.port, "ProtocolEnabled": True},
        )
    )


async def _reset(call: Call) -> Answer:
    choose(call.body, "ResetType", _RESETS)
    call.bmc.restart_soon()
    return Answer(status=204)


async def _logs(_call: Call) -> Answer:
    members = [link(f"{LOGS}/{name}") for name in ("Sel", "Lclog")]
    return Answer(collection(LOGS, "LogServiceCollection", members))


async def _log(call: Call) -> Answer:
    name = call.names["log"]
    if name not in ("Sel", "Lclog"):
        return not_found(call.path)
    path = f"{LOGS}/{name}"
    values: Json = {"Entries": link(f"{path}/Entries"), "OverWritePolicy": "WrapsWhenFull"}
    if name == "Sel":
        values["Actions"] = {"#LogService.ClearLog": {"target": f"{path}/Actions/LogService.ClearLog"}}
        values["MaxNumberOfRecords"] = call.bmc.sel.capacity
    return Answer(resource(path, "LogService.v1_3_0.LogService", f"{name} Log Service", **values))


async def _sel(call: Call) -> Answer:
    records = call.bmc.sel.records[::-1]
    return _page(call, SEL_ENTRIES, len(records), lambda index: sel_entry(records[index]))


async def _sel_one(call: Call) -> Answer:
    for record in call.bmc.sel.records:
        if str(int.from_bytes(record[:2], "little")) == call.names["entry"]:
            return Answer(sel_entry(record))
    return not_found(call.path)


async def _lifecycle_one(call: Call) -> Answer:
    for entry in call.service.lifecycle.newest_first():
        if str(entry.number) == call.names["entry"]:
            return Answer(entry.describe())
    return not_found(call.path)


async def _lifecycle(call: Call) -> Answer:
    entries = call.service.lifecycle.newest_first()
    return _page(call, LC_ENTRIES, len(entries), lambda index: entries[index].describe())


def _page(call: Call, path: str, total: int, entry: Callable[[int], Json]) -> Answer:
    """Return one page of a log, newest first, and where the next one is."""
    try:
        skip = int(call.query.get("$skip", "0"))
        top = min(PAGE, int(call.query.get("$top", str(PAGE))))
    except ValueError as exc:
        text = "The value of a query parameter is not a number."
        raise Rejected(error(400, "Base.1.12.QueryParameterValueTypeError", text)) from exc
    if skip < 0 or top < 0 or (skip and skip >= total):
        text = "The value of a query parameter is out of range."
        raise Rejected(error(400, "Base.1.12.QueryParameterOutOfRange", text))
    ends = min(skip + top, total)
    body = collection(path, "LogEntryCollection", [entry(index) for index in range(skip, ends)])
    body["Members@odata.count"] = total
    if ends < total and "$top" not in call.query:
        body["Members@odata.nextLink"] = f"{path}?$skip={ends}"
    return Answer(body)


async def _clear_sel(call: Call) -> Answer:
    call.bmc.clear_sel()
    return Answer(status=204)


async def _api_status(call: Call) -> Answer:
    server = "OutOfPOST" if call.bmc.power.on else "PoweredOff"
    return Answer(
        {
            "@Message.ExtendedInfo": [],
            "LCStatus": "Ready",
            "RTStatus": "Ready",
            "ServerStatus": server,
            "TelemetryStatus": "Ready",
            "Status": "Ready",
        }
    )


async def _screenshot(call: Call) -> Answer:
    choose(call.body, "FileType", _SHOTS)
    picture = base64.b64encode(await screenshot(call.bmc)).decode()
    return Answer({"@Message.ExtendedInfo": [], "ServerScreenShotFile": picture})


async def _eula_status(call: Call) -> Answer:
    text = "accepted" if call.service.eula_accepted else "not accepted"
    detail = {
        "Message": f"The SupportAssist End User License Agreement (EULA) is {text}.",
        "MessageId": "SRV104",
    }
    return Answer({"@Message.ExtendedInfo": [detail], "EULAStatus": text.title()})


async def _accept_eula(call: Call) -> Answer:
    call.service.eula_accepted = True
    return success(202)


async def _support_assist(call: Call) -> Answer:
    if call.body.get("ShareType") != "Local":
        choose(call.body, "ShareType", ("Local",))
    parts = call.body.get("DataSelectorArrayIn")
    if not isinstance(parts, list):
        raise missing_property("DataSelectorArrayIn")
    for part in parts:
        choose({"DataSelectorArrayIn": part}, "DataSelectorArrayIn", _PARTS)
    if not call.service.eula_accepted:
        raise Rejected(
            error(
                400,
                "IDRAC.2.8.SRV085",
                "Unable to start the operation because the SupportAssist End User License Agreement (EULA) "
                "is not accepted.",
                "Accept the EULA and retry the operation.",
            )
        )
    picture = await screenshot(call.bmc)
    return _export(call, "SACollectExportHealthData", "sacollect.zip", lambda: _bundle(call, parts, picture))


def _export(call: Call, kind: str, name: str, make: Callable[[], bytes]) -> Answer:
    """Make a job whose result is a file under /redfish/v1/Dell."""
    path = f"{ROOT}/Dell/{name}"
    exports = call.service.exports

    def work() -> None:
        exports[path] = make()

    return accepted(call.service.jobs.add(kind, kind, call.bmc.spec.job_s, work, result=path))


def _bundle(call: Call, parts: list[str], picture: bytes) -> bytes:
    """Return a zip of what the BMC knows, a folder for each part asked for."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "metadata.json", json.dumps({"ServiceTag": call.bmc.spec.chassis.serial, "Parts": parts})
        )
        archive.writestr("screen.png", picture)
        if "HWData" in parts:
            archive.writestr("HWData/inventory.json", _inventory(call))
            archive.writestr(
                "HWData/sel.json", json.dumps([sel_entry(record) for record in call.bmc.sel.records])
            )
        if "TTYLogs" in parts:
            archive.writestr("TTYLogs/serial.log", call.bmc.sol.tail)
        if "DebugLogs" in parts:
            archive.writestr("DebugLogs/lclog.json", _lc_json(call))
    return data.getvalue()


def _inventory(call: Call) -> bytes:
    chassis, hardware = call.bmc.spec.chassis, call.bmc.spec.hardware
    return json.dumps({"ServiceTag": chassis.serial, "Model": hardware.product, "MAC": chassis.mac}).encode()


def _lc_json(call: Call) -> bytes:
    return json.dumps([entry.describe() for entry in call.service.lifecycle.newest_first()]).encode()


async def _export_lc(call: Call) -> Answer:
    choose(call.body, "ShareType", ("Local",))
    return _export(call, "LCLogExport", "lclog.json", lambda: _lc_json(call))


async def _export_inventory(call: Call) -> Answer:
    choose(call.body, "ShareType", ("Local",))
    return _export(call, "HardwareInventory", "hwinv.json", lambda: _inventory(call))


def _lc(name: str) -> str:
    return f"{LC_SERVICE}/Actions/DellLCService.{name}"


ROUTES = (
    Route("GET", f"{ROOT}/Managers", _managers),
    Route("GET", MANAGER, _manager),
    Route("GET", f"{MANAGER}/NetworkProtocol", _network),
    Route("POST", f"{MANAGER}/Actions/Manager.Reset", _reset, Privilege.OPERATOR),
    Route("GET", LOGS, _logs),
    Route("GET", f"{LOGS}/{{log}}", _log),
    Route("GET", SEL_ENTRIES, _sel),
    Route("GET", f"{SEL_ENTRIES}/{{entry}}", _sel_one),
    Route("GET", LC_ENTRIES, _lifecycle),
    Route("GET", f"{LC_ENTRIES}/{{entry}}", _lifecycle_one),
    Route("POST", f"{LOGS}/Sel/Actions/LogService.ClearLog", _clear_sel, Privilege.OPERATOR),
    Route("POST", _lc("GetRemoteServicesAPIStatus"), _api_status),
    Route("POST", _lc("ExportServerScreenShot"), _screenshot, Privilege.OPERATOR),
    Route("POST", _lc("SupportAssistGetEULAStatus"), _eula_status),
    Route("POST", _lc("SupportAssistAcceptEULA"), _accept_eula, Privilege.ADMINISTRATOR),
    Route("POST", _lc("SupportAssistCollection"), _support_assist, Privilege.ADMINISTRATOR),
    Route("POST", _lc("ExportLCLog"), _export_lc, Privilege.OPERATOR),
    Route("POST", _lc("ExportHWInventory"), _export_inventory, Privilege.OPERATOR),
)
