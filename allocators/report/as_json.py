"""Figures as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping


def as_json(figures: Mapping[str, object]) -> str:
    """One indented JSON object, in the order of the figures."""
    return json.dumps(figures, indent=2)
