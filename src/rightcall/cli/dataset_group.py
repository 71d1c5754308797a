"""`rightcall dataset` with all of its commands."""

from __future__ import annotations

from rightcall.cli.dataset_cleaning import dedupe, mutate
from rightcall.cli.dataset_command import app as dataset
from rightcall.cli.dataset_exchange import export, import_

dataset.command()(export)
dataset.command("import")(import_)
dataset.command()(dedupe)
dataset.command()(mutate)
