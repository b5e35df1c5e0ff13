"""Recipes by model."""
