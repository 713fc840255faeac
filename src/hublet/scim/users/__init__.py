"""Provisioned users: the accounts behind them, their membership and roles."""
