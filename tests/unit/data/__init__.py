"""Tests of the data: reading, the contract, the sample, the tables."""
