"""Carries deliveries to their targets, fairly, until they arrive or are given up."""
