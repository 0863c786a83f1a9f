entity_ids: dict[int, str]
sensor_type_codes: dict[int, str]
