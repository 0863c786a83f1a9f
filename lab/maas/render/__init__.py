"""How the region's memory looks as JSON in API answers."""

API = "/MAAS/api/2.0"
