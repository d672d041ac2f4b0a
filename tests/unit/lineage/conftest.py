"""How the property tests run."""

from hypothesis import settings

# They look for wrong answers; how long one takes says more of a busy machine than of the code.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")
