"""The pipeline stages, one file each: read the inputs, call the library, write the outputs."""
