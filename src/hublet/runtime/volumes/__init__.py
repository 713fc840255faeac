"""Volumes of attempts: repositories, buckets and spaces as folders, and buckets written back."""
