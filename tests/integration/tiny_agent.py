"""A training configuration of a small agent on small paths."""

from __future__ import annotations

TINY = """\
name: tiny
agent:
  name: tiny
  clock: {kind: rtt, multiple: 0.5}
  observation: {features: [latency_ratio, send_ratio, rtt_inflation], history: 3}
  action: {map: {kind: signed_multiply, delta: 0.05}, target: rate, limits: {rate: [0.1mbps, 30mbps]}}
  reward: {terms: [{term: throughput, weight: 1.0}]}
  startup: 2mbps
environment:
  paths: {kind: ranges, rate: {uniform: [4mbps, 12mbps]}, one_way_delay: {uniform: [5ms, 20ms]}, queue: {packets: 30}}
  episode: {steps: 60}
"""
DISCRETE = "agent.action.map={kind: discrete, operations: ['/1.1', '+0', '*1.1']}"
