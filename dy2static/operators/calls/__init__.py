"""Calls of what is no operator: functions, torch's functions, and what may be given to code that is not converted."""
