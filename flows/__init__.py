"""The outermost layer: wires the stages into Prefect flows, and the command line. No logic of its own."""
