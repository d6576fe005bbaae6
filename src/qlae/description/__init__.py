"""What every latent of a model means: what its codes change in decoded observations, measured and shown on a page.

``samples`` collects the observations and their codes, ``effects`` decodes interventions, ``describe`` puts the findings
together, and ``page`` writes them as HTML. What depends on the kind of observations is in ``image_effects``,
``vector_effects`` and ``series_effects``.
"""

from .describe import Description, describe

__all__ = ["Description", "describe"]
