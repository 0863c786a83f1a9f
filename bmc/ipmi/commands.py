"""The IPMI commands that we send: network function, number, what they do, least answer."""

from __future__ import annotations

from bmc.ipmi.session import Command

# Chassis
CHASSIS_STATUS = Command(0x00, 0x01, "power state", 3)
CHASSIS_CONTROL = Command(0x00, 0x02, "power control")
CHASSIS_IDENTIFY = Command(0x00, 0x04, "the identify LED")
SET_BOOT_OPTION = Command(0x00, 0x08, "setting the boot device")
GET_BOOT_OPTION = Command(0x00, 0x09, "the boot device", 7)
# The controller itself
DEVICE_ID = Command(0x06, 0x01, "the device id", 11)
COLD_RESET = Command(0x06, 0x02, "a cold reset")
SET_WATCHDOG = Command(0x06, 0x24, "setting the watchdog")
GET_WATCHDOG = Command(0x06, 0x25, "the watchdog", 8)
GET_USER_ACCESS = Command(0x06, 0x44, "user access", 4)
GET_USER_NAME = Command(0x06, 0x46, "user names", 1)
SET_USER_PASSWORD = Command(0x06, 0x47, "setting a user's password")
# Serial over LAN
ACTIVATE_PAYLOAD = Command(0x06, 0x48, "a serial console over LAN", 8)
DEACTIVATE_PAYLOAD = Command(0x06, 0x49, "ending the serial console")
PAYLOAD_OWNER = Command(0x06, 0x4B, "who owns the serial console", 4)
# Event log
SEL_INFO = Command(0x0A, 0x40, "the event log", 5)
RESERVE_SEL = Command(0x0A, 0x42, "reserving the event log", 2)
SEL_ENTRY = Command(0x0A, 0x43, "an event", 3)
CLEAR_SEL = Command(0x0A, 0x47, "clearing the event log", 1)
SEL_TIME = Command(0x0A, 0x48, "the event log's clock", 4)
SET_SEL_TIME = Command(0x0A, 0x49, "setting the event log's clock")
# Sensors and inventory
SENSOR_READING = Command(0x04, 0x2D, "a sensor", 2)
SDR_INFO = Command(0x0A, 0x20, "the sensor repository", 13)
RESERVE_SDR = Command(0x0A, 0x22, "reserving the sensor repository", 2)
GET_SDR = Command(0x0A, 0x23, "a sensor record", 2)
DEVICE_SDR_INFO = Command(0x04, 0x20, "the device's sensors", 2)
GET_DEVICE_SDR = Command(0x04, 0x21, "a device's sensor record", 2)
RESERVE_DEVICE_SDR = Command(0x04, 0x22, "reserving the device's sensors", 2)
FRU_INFO = Command(0x0A, 0x10, "an inventory device", 3)
READ_FRU = Command(0x0A, 0x11, "inventory data", 1)
# LAN
GET_LAN = Command(0x0C, 0x02, "LAN settings", 1)
