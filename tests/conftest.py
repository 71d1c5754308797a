"""How far hypothesis looks: a little, the same on every run; RIGHTCALL_EXAMPLES=1000 looks further, elsewhere."""

import os

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("cuts", "replies")

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_MANY = int(os.environ.get("RIGHTCALL_EXAMPLES", "0"))
settings.register_profile("ci", max_examples=20, derandomize=True, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("deep", max_examples=_MANY or 1000, deadline=None, suppress_health_check=_QUIET)
settings.load_profile("deep" if _MANY else "ci")
