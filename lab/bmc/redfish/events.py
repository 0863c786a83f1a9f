"""Events and telemetry: subscriptions that are pushed to, a stream, metric reports."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging

import aiohttp

from lab.bmc.redfish.answers import (
    CHASSIS,
    ROOT,
    SYSTEM,
    Answer,
    Json,
    bad_value,
    collection,
    link,
    missing_property,
    not_found,
    resource,
    success,
)
from lab.bmc.redfish.service import Call, Route, Service
from lab.bmc.sensor_model import Kind
from lab.bmc.spec import Privilege

EVENTS = f"{ROOT}/EventService"
SUBSCRIPTIONS = f"{EVENTS}/Subscriptions"
TELEMETRY = f"{ROOT}/TelemetryService"
REPORTS = f"{TELEMETRY}/MetricReports"
PUSH_LIMIT_S = 5.0
_REPORTS = {
    "ThermalSensor": (Kind.TEMPERATURE,),
    "FanSensor": (Kind.FAN,),
    "PowerMetrics": (Kind.OTHER_UNITS, Kind.CURRENT, Kind.VOLTAGE),
    "GPUMetrics": (Kind.TEMPERATURE,),
}
_ids = itertools.count(1)
_log = logging.getLogger(__name__)


async def _service(_call: Call) -> Answer:
    return Answer(
        resource(
            EVENTS,
            "EventService.v1_10_0.EventService",
            "Event Service",
            ServiceEnabled=True,
            EventFormatTypes=["Event", "MetricReport"],
            Subscriptions=link(SUBSCRIPTIONS),
            Actions={
                "#EventService.SubmitTestEvent": {"target": f"{EVENTS}/Actions/EventService.SubmitTestEvent"}
            },
        )
    )


async def _subscriptions(call: Call) -> Answer:
    members = [link(f"{SUBSCRIPTIONS}/{name}") for name in call.service.subscriptions]
    return Answer(collection(SUBSCRIPTIONS, "EventDestinationCollection", members))


async def _subscribe(call: Call) -> Answer:
    destination = call.body.get("Destination")
    if not isinstance(destination, str):
        raise missing_property("Destination")
    if not destination.startswith(("http://", "https://")):
        raise bad_value("Destination", destination)
    subscription_id = str(next(_ids))
    path = f"{SUBSCRIPTIONS}/{subscription_id}"
    body = resource(
        path,
        "EventDestination.v1_13_2.EventDestination",
        "Event Subscription",
        Destination=destination,
        Protocol="Redfish",
        Context=call.body.get("Context", ""),
        EventFormatType=call.body.get("EventFormatType", "Event"),
    )
    call.service.subscriptions[subscription_id] = body
    return Answer(body, 201, {"Location": path})


async def _subscription(call: Call) -> Answer:
    body = call.service.subscriptions.get(call.names["subscription"])
    return Answer(body) if body else not_found(call.path)


async def _unsubscribe(call: Call) -> Answer:
    gone = call.service.subscriptions.pop(call.names["subscription"], None)
    return success() if gone else not_found(call.path)


async def _test_event(call: Call) -> Answer:
    await push(
        call.service, call.body.get("MessageId", "TST100"), call.body.get("Message", "Test event."), "OK"
    )
    return Answer(status=204)


async def push(service: Service, message_id: str, message: str, severity: str) -> None:
    """Send an event to every subscriber; one that does not take it is passed over, as BMCs do."""
    event: Json = {
        "@odata.type": "#Event.v1_7_1.Event",
        "Id": str(next(_ids)),
        "Name": "Event Array",
        "Events": [
            {
                "EventTimestamp": service.stamp(),
                "EventType": "Alert",
                "MessageId": message_id,
                "Message": message,
                "Severity": severity,
                "OriginOfCondition": link(SYSTEM),
            }
        ],
    }
    sends = [_send(subscription, event) for subscription in service.subscriptions.values()]
    await asyncio.gather(*sends)


async def _send(subscription: Json, event: Json) -> None:
    limit = aiohttp.ClientTimeout(total=PUSH_LIMIT_S)
    body = json.dumps({**event, "Context": subscription["Context"]})
    headers = {"Content-Type": "application/json"}
    try:
        async with (
            aiohttp.ClientSession(timeout=limit) as client,
            client.post(subscription["Destination"], data=body, headers=headers, ssl=False),
        ):
            pass
    except (aiohttp.ClientError, TimeoutError) as exc:
        _log.debug("event to %s was not taken: %s", subscription["Destination"], exc)


async def _telemetry(_call: Call) -> Answer:
    kind = "TelemetryService.v1_3_3.TelemetryService"
    return Answer(
        resource(TELEMETRY, kind, "Telemetry Service", ServiceEnabled=True, MetricReports=link(REPORTS))
    )


async def _reports(_call: Call) -> Answer:
    members = [link(f"{REPORTS}/{name}") for name in _REPORTS]
    return Answer(collection(REPORTS, "MetricReportCollection", members))


async def _report(call: Call) -> Answer:
    name = call.names["report"]
    if name not in _REPORTS:
        return not_found(call.path)
    values = [
        {
            "MetricId": reading.model.kind.name.title().replace("_", ""),
            "MetricValue": f"{reading.value:g}",
            "Timestamp": call.service.stamp(),
            "MetricProperty": f"{CHASSIS}/Sensors/{reading.model.name.replace(' ', '')}",
            "Oem": {"Dell": {"ContextID": reading.model.name}},
        }
        for reading in call.bmc.sensors.all()
        if reading.model.analog
        and reading.value is not None
        and reading.model.kind in _REPORTS[name]
        and (name != "GPUMetrics" or reading.model.name.startswith("GPU"))
    ]
    return Answer(
        resource(
            f"{REPORTS}/{name}",
            "MetricReport.v1_4_3.MetricReport",
            f"{name} Metric Report",
            ReportSequence="1",
            Timestamp=call.service.stamp(),
            MetricValues=values,
        )
    )


ROUTES = (
    Route("GET", EVENTS, _service),
    Route("GET", SUBSCRIPTIONS, _subscriptions),
    Route("POST", SUBSCRIPTIONS, _subscribe, Privilege.OPERATOR),
    Route("GET", f"{SUBSCRIPTIONS}/{{subscription}}", _subscription),
    Route("DELETE", f"{SUBSCRIPTIONS}/{{subscription}}", _unsubscribe, Privilege.OPERATOR),
    Route("POST", f"{EVENTS}/Actions/EventService.SubmitTestEvent", _test_event, Privilege.OPERATOR),
    Route("GET", TELEMETRY, _telemetry),
    Route("GET", REPORTS, _reports),
    Route("GET", f"{REPORTS}/{{report}}", _report),
)
