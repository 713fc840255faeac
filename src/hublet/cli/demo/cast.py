"""Who and what the demo has."""

from hublet.accounts.records import Plan, Role
from hublet.tokens.records import Scope, TokenRole

PEOPLE = {
    "ada": "Ada Lovelace",
    "alan": "Alan Turing",
    "grace": "Grace Hopper",
    "katherine": "Katherine Johnson",
}
ORGANIZATIONS = {
    "analytical-engines": ("Analytical Engines", Plan.enterprise),
    "night-sky": ("Night Sky Survey", Plan.team),
    "open-notebook": ("Open Notebook", Plan.free),
}
MEMBERS = (
    ("analytical-engines", "ada", Role.admin),
    ("analytical-engines", "grace", Role.write),
    ("analytical-engines", "alan", Role.contributor),
    ("night-sky", "katherine", Role.admin),
    ("night-sky", "ada", Role.read),
    ("open-notebook", "alan", Role.admin),
)
# The organization, the name, what it is for, and one member with a role.
GROUPS = (
    ("analytical-engines", "research", "What is not public yet", "grace", Role.admin),
    ("night-sky", "observers", "Those who look", "ada", Role.write),
)
ROBOTS = {"engine-robot": ("analytical-engines", Role.write)}
FOLLOWS = (("grace", "ada"), ("alan", "ada"), ("katherine", "grace"))
TOKENS = (
    ("ada", "demo: may do everything", TokenRole.write, None),
    ("grace", "demo: only reads", TokenRole.read, None),
    ("alan", "demo: only webhooks", TokenRole.fine_grained, Scope.webhooks),
    ("engine-robot", "demo: only jobs", TokenRole.fine_grained, Scope.jobs),
)
