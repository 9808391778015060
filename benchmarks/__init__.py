"""Measurements, each a module: python -m benchmarks.model"""
