"""The service root, sessions, tasks, jobs, certificates."""

from __future__ import annotations

import ssl

from lab.bmc.faults import Fault
from lab.bmc.redfish.answers import (
    JOBS,
    MANAGER,
    ROOT,
    TASKS,
    UPDATE,
    Answer,
    Json,
    Rejected,
    collection,
    error,
    link,
    missing_property,
    not_found,
    resource,
    success,
)
from lab.bmc.redfish.certificate import Identity, dates, signing_request
from lab.bmc.redfish.jobs import watched
from lab.bmc.redfish.service import Call, Route
from lab.bmc.redfish.sessions import TIMEOUT_S, WebSession
from lab.bmc.spec import Privilege

SESSIONS = f"{ROOT}/SessionService/Sessions"
CERTIFICATE = f"{MANAGER}/NetworkProtocol/HTTPS/Certificates/SecurityCertificate.1"
CERTIFICATES = f"{ROOT}/CertificateService"


async def _versions(_call: Call) -> Answer:
    return Answer({"v1": f"{ROOT}/"})


async def _root(call: Call) -> Answer:
    bmc = call.bmc
    return Answer(
        {
            **resource(ROOT, "ServiceRoot.v1_15_0.ServiceRoot", "Root Service"),
            "Id": "RootService",
            "RedfishVersion": "1.17.0",
            "Vendor": "Dell",
            "Product": "Integrated Dell Remote Access Controller",
            "UUID": str(bmc.guid),
            "ProtocolFeaturesSupported": {
                "ExpandQuery": {
                    "ExpandAll": True,
                    "Levels": True,
                    "Links": True,
                    "NoLinks": True,
                    "MaxLevels": 1,
                },
                "FilterQuery": False,
                "SelectQuery": True,
                "OnlyMemberQuery": False,
            },
            "Oem": {"Dell": {"ManagerMACAddress": bmc.mac.hex(":"), "ServiceTag": bmc.spec.chassis.serial}},
            "Systems": link(f"{ROOT}/Systems"),
            "Chassis": link(f"{ROOT}/Chassis"),
            "Managers": link(f"{ROOT}/Managers"),
            "SessionService": link(f"{ROOT}/SessionService"),
            "UpdateService": link(UPDATE),
            "EventService": link(f"{ROOT}/EventService"),
            "TelemetryService": link(f"{ROOT}/TelemetryService"),
            "CertificateService": link(CERTIFICATES),
            "Tasks": link(f"{ROOT}/TaskService"),
            "Links": {"Sessions": link(SESSIONS)},
        }
    )


async def _session_service(_call: Call) -> Answer:
    path = f"{ROOT}/SessionService"
    values: Json = {"ServiceEnabled": True, "SessionTimeout": int(TIMEOUT_S), "Sessions": link(SESSIONS)}
    return Answer(resource(path, "SessionService.v1_1_8.SessionService", "Session Service", **values))


def _describe(session: WebSession) -> Json:
    return resource(
        f"{SESSIONS}/{session.session_id}",
        "Session.v1_5_0.Session",
        "User Session",
        UserName=session.account.name.decode(errors="replace"),
        ClientOriginIPAddress=session.address,
        SessionType="Redfish",
    )


async def _sessions(call: Call) -> Answer:
    members = [link(f"{SESSIONS}/{session.session_id}") for session in call.service.sessions]
    return Answer(collection(SESSIONS, "SessionCollection", members))


async def _session(call: Call) -> Answer:
    for session in call.service.sessions:
        if session.session_id == call.names["session"]:
            return Answer(_describe(session))
    return not_found(call.path)


async def _login(call: Call) -> Answer:
    for name in ("UserName", "Password"):
        if not isinstance(call.body.get(name), str):
            raise missing_property(name)
    wrong = call.bmc.faults.active(Fault.WRONG_PASSWORD)
    account = call.bmc.users.authenticate(call.body["UserName"].encode(), call.body["Password"].encode())
    if account is None or wrong:
        return denied()
    peer = (call.request.transport.get_extra_info("peername") if call.request.transport else None) or ("",)
    full = call.bmc.faults.active(Fault.NO_SESSIONS)
    session = None if full else call.service.sessions.open(account, str(peer[0]))
    if session is None:
        return error(
            503,
            "IDRAC.2.8.RAC0218",
            "The maximum number of user sessions is reached.",
            "Make sure that the number of active sessions is at or below the limit.",
        )
    call.service.note(
        "USR0030", f"Successfully logged in using {call.body['UserName']}, from {peer[0]}.", category="Audit"
    )
    headers = {"X-Auth-Token": session.token, "Location": f"{SESSIONS}/{session.session_id}"}
    return Answer(_describe(session), 201, headers)


async def _logout(call: Call) -> Answer:
    return success() if call.service.sessions.close(call.names["session"]) else not_found(call.path)


def denied() -> Answer:
    return error(
        401,
        "Base.1.12.AccessDenied",
        "The authentication credentials included with this request are missing or invalid.",
        "Attempt to ensure that the URI is correct and that the service has the appropriate credentials.",
        WWW_Authenticate='Basic realm="RedfishService"',
    )


async def _task_service(_call: Call) -> Answer:
    path = f"{ROOT}/TaskService"
    kind = "TaskService.v1_2_0.TaskService"
    return Answer(resource(path, kind, "Task Service", ServiceEnabled=True, Tasks=link(TASKS)))


async def _tasks(call: Call) -> Answer:
    members = [link(f"{TASKS}/{job.job_id}") for job in call.service.jobs]
    return Answer(collection(TASKS, "TaskCollection", members))


async def _task(call: Call) -> Answer:
    job = call.service.jobs.get(call.names["job"])
    return watched(job) if job else not_found(call.path)


async def _jobs(call: Call) -> Answer:
    members = [job.describe() for job in call.service.jobs]
    return Answer(collection(JOBS, "DellJobCollection", members))


async def _job(call: Call) -> Answer:
    job = call.service.jobs.get(call.names["job"])
    return Answer(job.describe()) if job else not_found(call.path)


async def _delete_job(call: Call) -> Answer:
    return success() if call.service.jobs.remove(call.names["job"]) else not_found(call.path)


async def _clear_jobs(call: Call) -> Answer:
    job_id = call.body.get("JobID")
    if not isinstance(job_id, str):
        raise missing_property("JobID")
    return success() if call.service.jobs.remove(job_id) else not_found(call.path)


async def _certificate_service(_call: Call) -> Answer:
    actions = {
        f"#CertificateService.{name}": {"target": f"{CERTIFICATES}/Actions/CertificateService.{name}"}
        for name in ("GenerateCSR", "ReplaceCertificate")
    }
    kind = "CertificateService.v1_0_4.CertificateService"
    return Answer(resource(CERTIFICATES, kind, "Certificate Service", Actions=actions))


async def _certificates(_call: Call) -> Answer:
    path = CERTIFICATE.rsplit("/", 1)[0]
    return Answer(collection(path, "CertificateCollection", [link(CERTIFICATE)]))


async def _certificate(call: Call) -> Answer:
    identity = call.service.identity
    begins, ends = dates(identity.certificate)
    return Answer(
        resource(
            CERTIFICATE,
            "Certificate.v1_7_0.Certificate",
            "SSL Certificate",
            CertificateString=identity.certificate,
            CertificateType="PEM",
            Fingerprint=identity.fingerprint,
            FingerprintHashAlgorithm="TPM_ALG_SHA256",
            ValidNotBefore=begins.isoformat(),
            ValidNotAfter=ends.isoformat(),
        )
    )


async def _generate_request(call: Call) -> Answer:
    request, key = signing_request(call.bmc.name, call.bmc.spec.host)
    call.service.pending_key = key
    return Answer({"CSRString": request, "CertificateCollection": link(CERTIFICATE.rsplit("/", 1)[0])})


async def _replace_certificate(call: Call) -> Answer:
    """Take a certificate for the key of the last signing request."""
    text = call.body.get("CertificateString")
    if not isinstance(text, str):
        raise missing_property("CertificateString")
    key = call.service.pending_key
    try:
        if key is None:
            raise Rejected(_wrong_certificate())
        identity = Identity(text, key)
        call.service.show_certificate(identity)
    except (ssl.SSLError, ValueError) as exc:
        raise Rejected(_wrong_certificate()) from exc
    call.service.identity, call.service.pending_key = identity, None
    return success()


def _wrong_certificate() -> Answer:
    return error(
        400,
        "IDRAC.2.8.RAC0704",
        "The certificate does not match the key of the last signing request.",
        "Generate a signing request, have it signed, and import what came back.",
    )


async def _exported(call: Call) -> Answer:
    data = call.service.exports.get(call.path)
    return not_found(call.path) if data is None else Answer(raw=data, content_type="application/octet-stream")


ROUTES = (
    Route("GET", "/redfish", _versions, None),
    Route("GET", ROOT, _root, None),
    Route("GET", f"{ROOT}/SessionService", _session_service),
    Route("GET", SESSIONS, _sessions),
    Route("POST", SESSIONS, _login, None),
    Route("GET", f"{SESSIONS}/{{session}}", _session),
    Route("DELETE", f"{SESSIONS}/{{session}}", _logout),
    Route("GET", f"{ROOT}/TaskService", _task_service),
    Route("GET", TASKS, _tasks),
    Route("GET", f"{TASKS}/{{job}}", _task),
    Route("GET", f"{ROOT}/TaskService/TaskMonitors/{{job}}", _task),
    Route("GET", JOBS, _jobs),
    Route("GET", f"{JOBS}/{{job}}", _job),
    Route("DELETE", f"{JOBS}/{{job}}", _delete_job, Privilege.OPERATOR),
    Route(
        "POST",
        f"{MANAGER}/Oem/Dell/DellJobService/Actions/DellJobService.DeleteJobQueue",
        _clear_jobs,
        Privilege.OPERATOR,
    ),
    Route("GET", CERTIFICATES, _certificate_service),
    Route("GET", CERTIFICATE.rsplit("/", 1)[0], _certificates),
    Route("GET", CERTIFICATE, _certificate),
    Route(
        "POST",
        f"{CERTIFICATES}/Actions/CertificateService.GenerateCSR",
        _generate_request,
        Privilege.ADMINISTRATOR,
    ),
    Route(
        "POST",
        f"{CERTIFICATES}/Actions/CertificateService.ReplaceCertificate",
        _replace_certificate,
        Privilege.ADMINISTRATOR,
    ),
    Route("GET", f"{ROOT}/Dell/{{file}}", _exported),
)
