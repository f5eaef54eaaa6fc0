"""Statements and expressions that decide or leave: if, while, and, or, try, with, assert, raise."""
