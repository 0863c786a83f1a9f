"""A machine as the API shows it: about eighty keys."""

from __future__ import annotations

from lab.maas.model.catalogue import HardwareType
from lab.maas.model.machine import Machine
from lab.maas.model.region import Region
from lab.maas.model.results import ResultStatus, ScriptSet
from lab.maas.render import API, network, storage

Json = dict[str, object]

HARDWARE_KEYS = (
    "system_vendor", "system_product", "system_family", "system_version", "system_sku", "system_serial",
    "cpu_model", "mainboard_vendor", "mainboard_product", "mainboard_serial", "mainboard_version",
    "mainboard_firmware_vendor", "mainboard_firmware_date", "mainboard_firmware_version",
    "chassis_vendor", "chassis_type", "chassis_serial", "chassis_version",
)  # fmt: skip
_TESTED = {
    "cpu": HardwareType.CPU,
    "memory": HardwareType.MEMORY,
    "storage": HardwareType.STORAGE,
    "network": HardwareType.NETWORK,
    "interface": None,
    "other": HardwareType.NODE,
}


def machine(region: Region, one: Machine) -> Json:
    """Render a machine in full."""
    return {
        **_identity(region, one),
        **_life(region, one),
        **_hardware(region, one),
        **_never_used(),
        **_tests(region, one),
    }


def enlisted(one: Machine, region: Region) -> Json:
    """Render the few fields that an anonymous enlister is shown."""
    where = network.zone(region.zones[one.zone])
    named = network.domain()
    where.pop("resource_uri")
    named.pop("resource_uri")
    return {
        "power_type": one.power_type,
        "status_action": one.status_action,
        "power_state": one.power_state,
        "node_type": 0,
        "system_id": one.system_id,
        "status_message": one.status_message,
        "zone": where,
        "architecture": one.architecture,
        "status": int(one.status),
        "fqdn": one.fqdn,
        "status_name": one.status.label,
        "domain": named,
        "hostname": one.hostname,
        "resource_uri": f"{API}/machines/{one.system_id}/",
    }


def _identity(region: Region, one: Machine) -> Json:
    return {
        "system_id": one.system_id,
        "hostname": one.hostname,
        "fqdn": one.fqdn,
        "domain": network.domain(),
        "description": one.description,
        "node_type": 0,
        "node_type_name": "Machine",
        "architecture": one.architecture,
        "zone": network.zone(region.zones[one.zone]),
        "pool": network.pool(region.pools[one.pool]),
        "tag_names": list(one.tags),
        "owner_data": dict(one.annotations),
        "workload_annotations": dict(one.annotations),
        "resource_uri": f"{API}/machines/{one.system_id}/",
    }


def _life(region: Region, one: Machine) -> Json:
    return {
        "status": int(one.status),
        "status_name": one.status.label,
        "status_message": one.status_message,
        "status_action": one.status_action,
        "owner": one.owner,
        "locked": one.locked,
        "netboot": one.netboot,
        "osystem": one.order.osystem,
        "distro_series": one.order.distro_series,
        "hwe_kernel": one.order.kernel,
        "ephemeral_deploy": one.order.ephemeral,
        "error_description": one.error_description,
        "power_type": one.power_type,
        "power_state": one.power_state,
        "default_gateways": network.gateways(region, one),
        "current_commissioning_result_id": one.commissioning_set,
        "current_installation_result_id": one.installation_set,
        "current_testing_result_id": one.testing_set,
    }


def _hardware(region: Region, one: Machine) -> Json:
    disks = [storage.disk(one, found) for found in one.disks]
    boot_disk, boot_port = one.boot_disk, one.boot_interface
    ports = [network.interface(region, one, found) for found in one.interfaces]
    return {
        "cpu_count": one.facts.cores,
        "cpu_speed": one.facts.cpu_speed,
        "memory": one.facts.memory,
        "storage": sum(found.size for found in one.disks if not found.virtual) / 1_000_000,
        "hardware_uuid": one.facts.uuid,
        "hardware_info": {key: one.facts.info.get(key, "Unknown") for key in HARDWARE_KEYS},
        "numanode_set": [
            {
                "index": 0,
                "memory": one.facts.memory,
                "cores": list(range(one.facts.cores)),
                "hugepages_set": [],
            }
        ],
        "physicalblockdevice_set": [found for found in disks if found["type"] == "physical"],
        "virtualblockdevice_set": [found for found in disks if found["type"] == "virtual"],
        "blockdevice_set": disks,
        "boot_disk": storage.disk(one, boot_disk) if boot_disk else None,
        "volume_groups": _volume_groups(one),
        "interface_set": ports,
        "boot_interface": ports[0] if boot_port else None,
    }


def _volume_groups(one: Machine) -> list[Json]:
    if one.volume_group is None:
        return []
    return [{"system_id": one.system_id, "id": one.volume_group, "__incomplete__": True}]


def _never_used() -> Json:
    """The fields that the lab's machines never fill."""
    return {
        "disable_ipv4": False,
        "parent": None,
        "bios_boot_method": None,
        "sync_interval": None,
        "cache_sets": [],
        "swap_size": None,
        "virtualmachine_id": None,
        "special_filesystems": [],
        "enable_kernel_crash_dump": False,
        "pod": None,
        "bcaches": [],
        "enable_hw_sync": False,
        "is_dpu": False,
        "next_sync": None,
        "raids": [],
        "last_sync": None,
        "min_hwe_kernel": "",
        "address_ttl": None,
    }


def _tests(region: Region, one: Machine) -> Json:
    testing = region.script_set(one.testing_set)
    found: Json = {
        **_state("commissioning", _whole(region.script_set(one.commissioning_set))),
        **_state("testing", _whole(testing)),
    }
    for name, hardware in _TESTED.items():
        state = testing.status_of(hardware) if testing and hardware is not None else None
        found |= _state(f"{name}_test", None if state is ResultStatus.ABORTED else state)
    return found


def _whole(one: ScriptSet | None) -> ResultStatus | None:
    if one is None or not one.results or one.status is ResultStatus.ABORTED:
        return None
    return one.status


def _state(name: str, state: ResultStatus | None) -> Json:
    return {
        f"{name}_status": -1 if state is None else int(state),
        f"{name}_status_name": "Unknown" if state is None else state.label,
    }
