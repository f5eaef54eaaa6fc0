"""Other people's tests under conversion: each converted call is held against eager. The pytest plugin stands on it.

    plugin -> watch (which calls) -> both (one call, both ways) -> copies, sameness
           -> called (calls written in a test file)             -> report (per place, in the end)
"""
