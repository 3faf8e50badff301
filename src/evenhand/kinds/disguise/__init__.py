"""Who an answer is by: families of models, and how answers give themselves away."""
