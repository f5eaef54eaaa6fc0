"""Serving: a saved model that any number of threads call.

    Predictor > ports (what a request holds) -> Runner -> results by name
              > Batcher: requests that arrive together run as one, where ``rows`` proves that they may
"""

from __future__ import annotations

from runtime.serving.predictor import Predictor
from runtime.serving.statistics import Statistics

__all__ = ["Predictor", "Statistics"]
