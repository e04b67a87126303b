"""Domains: families of models, each there for a property of its own."""

from fsmdp.domains.exogenous import ExogenousBlock as ExogenousBlock
from fsmdp.domains.exogenous import exogenous_basis as exogenous_basis
from fsmdp.domains.exogenous import exogenous_block as exogenous_block
from fsmdp.domains.gridworld import gridworld as gridworld
from fsmdp.domains.influence import Influence as Influence
from fsmdp.domains.influence import influence as influence
from fsmdp.domains.maintenance import maintenance as maintenance
from fsmdp.domains.proposition import proposition_one as proposition_one
from fsmdp.domains.random import random_model as random_model
from fsmdp.domains.registry import DOMAINS as DOMAINS
from fsmdp.domains.registry import Domain as Domain
from fsmdp.domains.registry import build_domain as build_domain
from fsmdp.domains.registry import register as register
from fsmdp.domains.sysadmin import multiagent_sysadmin as multiagent_sysadmin
from fsmdp.domains.sysadmin import sysadmin as sysadmin
