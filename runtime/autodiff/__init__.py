"""Automatic differentiation: the gradient of a Program is another Program."""

from runtime.autodiff import rules as rules  # fills the tables of both halves
from runtime.autodiff.derive import Derivative, derive
from runtime.autodiff.forward import NotDifferentiable
from runtime.autodiff.node import Runner, choose_autograd, gradient_path

__all__ = ["Derivative", "NotDifferentiable", "Runner", "choose_autograd", "derive", "gradient_path"]
