"""Gives MAAS the machines of the light rack, whose nodes never boot and so never enlist themselves."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence

import aiohttp

from lab.errors import NoService
from lab.secrets import LabSecrets
from lab.spec import BMC_USER, LabNet, NodeSpec

_AT_ONCE = 8


async def enlist(
    session: aiohttp.ClientSession, net: LabNet, secret: LabSecrets, specs: Sequence[NodeSpec]
) -> int:
    """Create the machines that MAAS does not know; return how many. Raises NoService."""
    known = await _known(session, net, secret)
    missing = [spec for spec in specs if spec.name not in known]
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(spec: NodeSpec) -> None:
        async with gate:
            form = _form(spec, secret)
            url = f"{net.maas_url}/api/2.0/machines/"
            async with session.post(url, data=form, headers=_signed(secret)) as answer:
                if answer.status != 200:
                    raise NoService(
                        spec.name,
                        f"MAAS refuses it: {(await answer.text())[:200]}",
                        follow="invoke lab.status",
                    )

    await asyncio.gather(*(one(spec) for spec in missing))
    return len(missing)


async def _known(session: aiohttp.ClientSession, net: LabNet, secret: LabSecrets) -> frozenset[str]:
    url = f"{net.maas_url}/api/2.0/machines/"
    async with session.get(url, headers=_signed(secret)) as answer:
        if answer.status != 200:
            raise NoService("MAAS", f"answers {answer.status} for its machines", follow="invoke lab.status")
        return frozenset(str(machine["hostname"]) for machine in await answer.json())


def _form(spec: NodeSpec, secret: LabSecrets) -> dict[str, str]:
    return {
        "hostname": spec.name,
        "architecture": "amd64/generic",
        "mac_addresses": spec.mac,
        "commission": "false",
        "power_type": "ipmi",
        "power_parameters_power_address": spec.bmc_host,
        "power_parameters_power_user": BMC_USER,
        "power_parameters_power_pass": secret.bmc_password,
        "power_parameters_cipher_suite_id": "17",
        "power_parameters_privilege_level": "ADMIN",
    }


def _signed(secret: LabSecrets) -> dict[str, str]:
    """OAuth 1.0 with PLAINTEXT signature, as MAAS's API keys work."""
    consumer, token, key = secret.maas_key.split(":")
    fields = {
        "oauth_version": "1.0",
        "oauth_signature_method": "PLAINTEXT",
        "oauth_consumer_key": consumer,
        "oauth_token": token,
        "oauth_signature": f"%26{key}",
        "oauth_nonce": secrets.token_hex(8),
        "oauth_timestamp": str(int(time.time())),
    }
    return {"Authorization": "OAuth " + ", ".join(f'{name}="{value}"' for name, value in fields.items())}
