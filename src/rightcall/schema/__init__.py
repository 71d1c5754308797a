"""JSON Schema: the only code that walks one."""
