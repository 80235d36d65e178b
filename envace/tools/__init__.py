"""Tool schemas and the code that checks calls against them."""
