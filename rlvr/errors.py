"""The one exception for everything a user can cause. Programs print it to stderr and exit with 2."""


class RlvrError(Exception):
    """Message of the form "what is wrong: what to do", naming the file, key or sequence."""
