"""A survey as one page to hand on: ``page`` writes it, ``treemap.js`` draws in it."""
