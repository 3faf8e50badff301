"""The kind `rubric`: one output scored on every dimension, each score with a quote."""
