"""Judge prompts as users write them, unlike the built-in ones, run unchanged: each with units, and
with replies in the styles in which strong models answer such a prompt."""
