"""Settings of the hub: the only module that reads the environment."""

from hublet.core.config.kinds import Network
from hublet.core.config.loader import (
    CONFIG_FILE,
    CONFIG_VARIABLE,
    VARIABLE,
    ConfigurationError,
    SettingInfo,
    aws_environment,
    describe,
    load,
    safe_database_url,
)
from hublet.core.config.settings import LogSettings, ServerSettings, Settings, called_address

__all__ = [
    "CONFIG_FILE",
    "CONFIG_VARIABLE",
    "VARIABLE",
    "ConfigurationError",
    "LogSettings",
    "Network",
    "ServerSettings",
    "SettingInfo",
    "Settings",
    "aws_environment",
    "called_address",
    "describe",
    "load",
    "safe_database_url",
]
